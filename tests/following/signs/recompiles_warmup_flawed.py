"""Fit a residual network whose auxiliary loss is faded in over the first steps."""

import torch
from torch import nn
from torch.nn import functional

STEPS = 400


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, 2 * width)
        self.outer = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.outer(functional.gelu(self.inner(self.norm(x))))


class Regressor(nn.Module):
    """A deep trunk with a head at its end and an auxiliary head in its middle."""

    def __init__(self, inputs, width, depth, fade=200):
        super().__init__()
        self.stem = nn.Linear(inputs, width)
        self.lower = nn.ModuleList(Block(width) for _ in range(depth))
        self.upper = nn.ModuleList(Block(width) for _ in range(depth))
        self.auxiliary = nn.Linear(width, 1)
        self.head = nn.Linear(width, 1)
        self.fade = fade
        self.seen = 0

    def forward(self, x):
        self.seen += 1
        weight = min(1.0, self.seen / self.fade)
        x = self.stem(x)
        for block in self.lower:
            x = block(x)
        side = self.auxiliary(x)
        for block in self.upper:
            x = block(x)
        return self.head(x), weight * side


def make_data(count, inputs):
    x = torch.randn(count, inputs)
    y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] * x[:, 2:3]
    return x, y


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    x, y = make_data(4096, 20)
    network = Regressor(20, width=128, depth=2)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-4)
    forward = torch.compile(network, backend="aot_eager")

    for step in range(STEPS):
        rows = torch.randint(0, len(x), (128,))
        target = y[rows]
        predicted, side = forward(x[rows])
        loss = functional.mse_loss(predicted, target) + 0.3 * functional.mse_loss(side, target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"{step:4d} {loss.item():.4f}")

    network.eval()
    with torch.no_grad():
        predicted, _ = network(x[:512])
        error = functional.l1_loss(predicted, y[:512])
    print(f"mean error {error.item():.4f}")


if __name__ == "__main__":
    main()
