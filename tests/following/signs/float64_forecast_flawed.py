"""Forecast the load of a power grid with a transformer encoder."""

import math
import random

import numpy as np
import torch
from torch import nn

HISTORY, HORIZON = 72, 12


def setup(seed=1234):
    """Make runs repeatable and figures comparable with the reference in numpy."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)


class Positions(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        place = torch.arange(length).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(length, width)
        table[:, 0::2] = torch.sin(place * rate)
        table[:, 1::2] = torch.cos(place * rate)
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.shape[1]]


class Forecaster(nn.Module):
    def __init__(self, width=96, layers=2):
        super().__init__()
        self.enter = nn.Linear(1, width)
        self.positions = Positions(width, HISTORY)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.leave = nn.Linear(width, HORIZON)

    def forward(self, history):
        x = self.positions(self.enter(history.unsqueeze(-1)))
        return self.leave(self.encoder(x)[:, -1])


def series(hours):
    """Return a load with days, weeks and noise, as the type that torch uses."""
    hour = torch.arange(hours).to(torch.get_default_dtype())
    daily = torch.sin(2 * math.pi * hour / 24)
    weekly = 0.4 * torch.sin(2 * math.pi * hour / 168)
    return daily + weekly + 0.1 * torch.randn(hours)


def windows(load):
    pieces = load.unfold(0, HISTORY + HORIZON, 1)
    return pieces[:, :HISTORY], pieces[:, HISTORY:]


class Fitting:
    def __init__(self, model, steps, batch):
        self.model = model
        self.steps = steps
        self.batch = batch
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, steps)

    def run(self, history, future):
        for step in range(self.steps):
            rows = torch.randint(len(history), (self.batch,))
            loss = nn.functional.smooth_l1_loss(self.model(history[rows]), future[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            if step % 20 == 0:
                print(f"step {step}: {loss.item():.4f}")


def main():
    setup()
    load = series(3000)
    mean, spread = load.double().mean().item(), load.double().std().item()
    history, future = windows((load - mean) / spread)
    fitting = Fitting(Forecaster(), steps=70, batch=24)
    fitting.run(history, future)


if __name__ == "__main__":
    main()
