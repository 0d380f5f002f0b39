"""Detect faults in sensor windows with a small fully connected network."""

import argparse

import numpy as np
import torch
from torch import nn

SENSORS, WINDOW = 12, 50


def record(hours, generator):
    """Return windows of simulated readings, with a label for the faulty ones."""
    time = np.arange(hours * 600)
    phases = generator.uniform(0, 2 * np.pi, SENSORS)
    readings = np.sin(time[:, None] / 40 + phases)
    readings += generator.normal(0, 0.3, readings.shape)
    faulty = generator.random(len(time) // WINDOW) < 0.3
    windows = readings[: len(faulty) * WINDOW].reshape(len(faulty), WINDOW * SENSORS)
    windows[faulty] += generator.normal(0, 0.6, (faulty.sum(), WINDOW * SENSORS))
    return windows, faulty.astype(np.int64)


def standardise(windows):
    mean = windows.mean(axis=0)
    spread = windows.std(axis=0)
    return (windows - mean) / spread


class Detector(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 2),
        )

    def forward(self, windows):
        return self.layers(windows)


def train(model, x, y, epochs, batch):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(epochs):
        total = 0.0
        for rows in torch.randperm(len(x)).split(batch):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        print(f"epoch {epoch}: {total / len(x):.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--width", type=int, default=768)
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    windows, faulty = record(options.hours, np.random.default_rng(0))
    x = torch.from_numpy(standardise(windows)).float()
    y = torch.from_numpy(faulty)
    model = Detector(x.shape[1], options.width).to(x.dtype)
    train(model, x, y, options.epochs, options.batch)
    with torch.no_grad():
        right = (model(x).argmax(dim=1) == y).double().mean()
    print(f"accuracy {right.item():.3f} on {len(y)} windows")


if __name__ == "__main__":
    main()
