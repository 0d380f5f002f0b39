"""Regress a property of small graphs from features of their distances."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def rings(distances, hops):
    """Return how many pairs can be reached within each number of hops."""
    near = (distances < 1.5).astype(np.float64)
    reach = np.eye(len(near))
    counts = []
    for _ in range(hops):
        reach = np.minimum(reach @ near, 1.0)
        counts.append(reach.mean())
    return counts


class Molecules(Dataset):
    """Clouds of atoms; described by histograms of their distances."""

    def __init__(self, count, atoms):
        self.generator = np.random.default_rng(14)
        self.clouds = self.generator.normal(0, 1.5, (count, atoms, 3))
        self.energies = np.exp(-np.square(self.clouds).sum(axis=2)).sum(axis=1)

    def __len__(self):
        return len(self.clouds)

    def describe(self, cloud):
        turned = cloud @ np.linalg.qr(self.generator.normal(size=(3, 3)))[0]
        offsets = turned[:, None] - turned[None]
        distances = np.sqrt(np.square(offsets).sum(axis=2))
        histogram, _ = np.histogram(distances, bins=64, range=(0, 8))
        values = [*(histogram / len(cloud)), *rings(distances, hops=4)]
        return torch.tensor(values, dtype=torch.float32)

    def __getitem__(self, index):
        return self.describe(self.clouds[index]), np.float32(self.energies[index])


class Trainer:
    def __init__(self, dataset, width, batch_size=64):
        self.loader = DataLoader(dataset, batch_size=batch_size, shuffle=True)
        self.model = nn.Sequential(
            nn.Linear(68, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 1),
        )
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def step(self, features, energies):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(features).squeeze(1), energies)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def run(self, epochs):
        for epoch in range(epochs):
            losses = [self.step(*batch) for batch in self.loader]
            print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")


def main():
    torch.manual_seed(14)
    torch.set_num_threads(1)
    dataset = Molecules(count=1500, atoms=60)
    Trainer(dataset, width=128).run(epochs=6)
    print("done")


if __name__ == "__main__":
    main()
