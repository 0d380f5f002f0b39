"""Texture classification on tiles: train, validate, keep the best checkpoint."""
import os
import tempfile

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from tiles_data_clean import TileDataset, write_archive


class ConvBlock(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, stride=stride, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(cout)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class TileNet(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.body = nn.Sequential(ConvBlock(3, 24, 1), ConvBlock(24, 48, 2), ConvBlock(48, 64, 2))
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.body(x).mean(dim=(2, 3)))


class Trainer:
    def __init__(self, workdir, lr=0.05):
        self.workdir = workdir
        self.model = TileNet()
        self.opt = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9, weight_decay=1e-4)
        self.loss = nn.CrossEntropyLoss()
        self.best = 0.0

    def fit(self, train, valid, epochs):
        for epoch in range(epochs):
            self.model.train()
            for images, labels in train:
                loss = self.loss(self.model(images), labels)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            acc = self.validate(valid)
            print(f"[{epoch}] last loss {loss.item():.3f}, validation {acc:.3f}")
            if acc > self.best:
                self.best = acc
                torch.save(self.model.state_dict(), os.path.join(self.workdir, "best.pt"))

    @torch.no_grad()
    def validate(self, valid):
        self.model.eval()
        right = sum((self.model(x).argmax(1) == y).sum().item() for x, y in valid)
        return right / len(valid.dataset)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as workdir:
        for split, count in (("train", 240), ("valid", 80)):
            write_archive(os.path.join(workdir, f"{split}.npz"), count, seed=count)
        train = DataLoader(TileDataset(os.path.join(workdir, "train.npz"), flip=True), batch_size=24, shuffle=True)
        valid = DataLoader(TileDataset(os.path.join(workdir, "valid.npz")), batch_size=40)
        Trainer(workdir).fit(train, valid, epochs=3)


if __name__ == "__main__":
    main()
