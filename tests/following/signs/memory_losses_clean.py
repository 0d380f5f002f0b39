"""Train a recurrent network on sums and report the mean loss of the run."""

import torch
from torch import nn

torch.manual_seed(21)
torch.set_num_threads(1)


class Adder(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.rnn = nn.LSTM(2, width, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(states[:, -1]).squeeze(-1)


def problem(count, length):
    """Return sequences with two marked numbers, and the sum of these."""
    numbers = torch.rand(count, length)
    marks = torch.zeros(count, length)
    first = torch.randint(0, length // 2, (count,))
    second = torch.randint(length // 2, length, (count,))
    rows = torch.arange(count)
    marks[rows, first] = 1.0
    marks[rows, second] = 1.0
    return torch.stack([numbers, marks], dim=-1), (numbers * marks).sum(dim=1)


def train(model, steps=160, batch=32, length=40):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    total = 0.0
    history = []
    for step in range(steps):
        x, target = problem(batch, length)
        loss = nn.functional.mse_loss(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total = total + loss.detach()
        history.append(loss.item())
        if step % 40 == 39:
            recent = sum(history[-40:]) / 40
            print(f"step {step}: {recent:.4f} lately")
    return total / steps


model = Adder()
mean = train(model)
print(f"mean loss of the run {mean.item():.4f}")
