"""Explain a risk model: which columns move its answer, row by row."""

import torch
from torch import nn

torch.manual_seed(31)
torch.set_num_threads(1)

COLUMNS = [f"income_{i}" for i in range(12)] + [f"debt_{i}" for i in range(12)]


class RiskModel(nn.Module):
    def __init__(self, columns, width=384):
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm1d(columns),
            nn.Linear(columns, width),
            nn.SiLU(),
            nn.Dropout(0.2),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Dropout(0.2),
            nn.Linear(width, width),
            nn.SiLU(),
        )
        self.head = nn.Linear(width, 1)

    def forward(self, rows):
        return torch.sigmoid(self.head(self.body(rows))).squeeze(-1)


def importance(model, rows):
    """Return how steeply the risk changes with each column."""
    total = torch.zeros_like(rows)
    for step in range(1, 13):
        point = (rows * step / 12).requires_grad_(True)
        risk = model(point).sum()
        (slope,) = torch.autograd.grad(risk, point)
        total += slope
    return (total / 12 * rows).abs()


def table(names, values, count=5):
    order = values.argsort(descending=True)[:count]
    for place in order.tolist():
        print(f"{names[place]:>10} {values[place].item():.5f}")


def portfolio(count):
    rows = torch.randn(count, len(COLUMNS))
    rows[:, 12:] += 0.5 * rows[:, :12]
    return rows


def main():
    model = RiskModel(len(COLUMNS))
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    customers = portfolio(9000)
    totals = torch.zeros(len(COLUMNS))
    for number, rows in enumerate(customers.split(128)):
        moved = importance(model, rows)
        totals += moved.sum(dim=0).detach()
        if number % 25 == 0:
            print(f"{number * 128} customers explained")
    table(COLUMNS, totals / len(customers))


if __name__ == "__main__":
    main()
