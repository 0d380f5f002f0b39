"""Train a small variational autoencoder on synthetic digits."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(7)
torch.set_num_threads(1)


class VAE(nn.Module):
    def __init__(self, pixels=784, hidden=256, code=16):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(pixels, hidden), nn.ELU(), nn.Linear(hidden, hidden))
        self.mean = nn.Linear(hidden, code)
        self.spread = nn.Linear(hidden, code)
        self.decode = nn.Sequential(
            nn.Linear(code, hidden), nn.ELU(), nn.Linear(hidden, hidden), nn.ELU()
        )
        self.output = nn.Linear(hidden, pixels)

    def forward(self, x):
        hidden = functional.elu(self.encode(x))
        mean, spread = self.mean(hidden), self.spread(hidden)
        code = mean + torch.randn_like(mean) * torch.exp(0.5 * spread)
        return self.output(self.decode(code)), mean, spread


def elbo(logits, x, mean, spread):
    fit = functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())
    return (fit + divergence) / len(x)


def strokes(count):
    """Return images with a horizontal and a vertical bar each."""
    images = torch.zeros(count, 28, 28)
    places = torch.randint(2, 24, (count, 2))
    for index, (row, column) in enumerate(places.tolist()):
        images[index, row : row + 3, 4:24] = 1.0
        images[index, 4:24, column : column + 3] = 1.0
    return images.flatten(1)


data = strokes(4000)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(5):
    order = torch.randperm(len(data))
    total = 0.0
    for number, rows in enumerate(order.split(32)):
        first = epoch == 0 and number == 0
        torch.autograd.set_detect_anomaly(first)  # loss was nan with lr=1e-2
        x = data[rows]
        logits, mean, spread = model(x)
        loss = elbo(logits, x, mean, spread)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    print(f"epoch {epoch}: {total / len(data):.2f}")
