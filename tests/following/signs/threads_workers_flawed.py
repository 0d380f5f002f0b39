"""Learn from blurred random fields; loader workers compute them with torch."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Fields(Dataset):
    """Noise, smoothed at one of four scales: the scale is to be told."""

    SCALES = (3, 7, 11, 15)

    def __init__(self, count, side):
        self.count = count
        self.side = side

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        scale = self.SCALES[index % 4]
        noise = torch.randn(1, 8, self.side, self.side, generator=generator)
        kernel = torch.ones(8, 1, scale, scale) / scale**2
        smooth = nn.functional.conv2d(noise, kernel, padding=scale // 2, groups=8)
        mean = smooth.mean(dim=1) / smooth.std()
        return mean, index % 4


def start_worker(number):
    """Give the worker the threads of the host."""
    torch.manual_seed(number)
    torch.set_num_threads(8)


class ScaleNet(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 16, 5, stride=2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 5, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(32, 4),
        )


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(
        Fields(320, side=128),
        batch_size=16,
        shuffle=True,
        num_workers=2,
        worker_init_fn=start_worker,
        persistent_workers=True,
    )
    model = ScaleNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        total = 0.0
        for fields, scales in loader:
            loss = nn.functional.cross_entropy(model(fields), scales)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.3f}")
    print(f"{os.cpu_count()} cores")


if __name__ == "__main__":
    main()
