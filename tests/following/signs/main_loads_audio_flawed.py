"""Recognise synthetic tones: each item is made into a spectrogram when it is read."""

import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RATE = 16000


class Tones(Dataset):
    def __init__(self, count, classes):
        self.count = count
        self.classes = classes
        self.window = torch.hann_window(512)

    def __len__(self):
        return self.count

    def waveform(self, index):
        generator = torch.Generator().manual_seed(index)
        time = torch.arange(2 * RATE) / RATE
        frequency = 200.0 * (1 + index % self.classes)
        wave = torch.sin(2 * math.pi * frequency * time)
        for harmonic in (2, 3, 4):
            wave += torch.sin(2 * math.pi * harmonic * frequency * time) / harmonic
        return wave + 0.5 * torch.randn(len(time), generator=generator)

    def spectrogram(self, index):
        wave = self.waveform(index)
        spectrum = torch.stft(wave, 512, 128, window=self.window, return_complex=True)
        decibels = 10 * torch.log10(spectrum.abs().square() + 1e-6)
        return nn.functional.avg_pool2d(decibels.unsqueeze(0), 4)

    def __getitem__(self, index):
        features = self.spectrogram(index)
        return features, index % self.classes


class ToneNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.layers = nn.Sequential(
            nn.BatchNorm2d(1),
            nn.Conv2d(1, 16, 3, stride=2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(32, classes),
        )

    def forward(self, x):
        return self.layers(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1400)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Tones(args.items, args.classes), batch_size=32, shuffle=True)
    model = ToneNet(args.classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        total = 0.0
        for features, labels in loader:
            loss = nn.functional.cross_entropy(model(features), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.3f}")


if __name__ == "__main__":
    main()
