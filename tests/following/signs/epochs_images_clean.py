"""Train a small CNN on augmented images that worker processes prepare."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    """Noisy squares and crosses, flipped and shifted at random."""

    def __init__(self, count, size=32):
        generator = torch.Generator().manual_seed(0)
        self.labels = torch.randint(0, 2, (count,), generator=generator)
        self.size = size

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = torch.zeros(1, self.size, self.size)
        label = int(self.labels[index])
        if label:
            image[:, 8:24, 8:24] = 1.0
        else:
            image[:, 14:18, 4:28] = 1.0
            image[:, 4:28, 14:18] = 1.0
        shift = torch.randint(-4, 5, (2,)).tolist()
        image = image.roll(shift, dims=(1, 2))
        if torch.rand(()) < 0.5:
            image = image.flip(2)
        return image + 0.2 * torch.randn_like(image), label


def build_network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 2),
    )


def train_epoch(network, loader, optimizer):
    total = 0.0
    for images, labels in loader:
        loss = nn.functional.cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--images", type=int, default=192)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(
        Shapes(args.images),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=True,
    )
    network = build_network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    began = time.perf_counter()
    for epoch in range(args.epochs):
        loss = train_epoch(network, loader, optimizer)
        if epoch % 10 == 0:
            print(f"epoch {epoch:3d}  loss {loss:.4f}")
    print(f"{args.epochs} epochs in {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
