"""Train a CNN on synthetic digits with as many threads as the server at work has."""

import argparse
import os

import torch
from torch import nn


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 24, 3, padding=1)
        self.conv2 = nn.Conv2d(24, 48, 3, padding=1)
        self.norm = nn.BatchNorm2d(48)
        self.fc1 = nn.Linear(48 * 7 * 7, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.norm(self.conv2(x))), 2)
        x = torch.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


def digits(count):
    """Return images with a bright patch whose place tells the class."""
    labels = torch.randint(10, (count,))
    images = 0.3 * torch.rand(count, 1, 28, 28)
    for index, label in enumerate(labels.tolist()):
        row, column = 6 * (label // 5) + 4, 5 * (label % 5) + 1
        images[index, 0, row : row + 5, column : column + 4] += 0.7
    return images, labels


def train(net, images, labels, steps, batch):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(steps):
        rows = torch.randint(len(images), (batch,))
        loss = nn.functional.cross_entropy(net(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


def main():
    args = parse()
    print(f"{args.threads} threads on {os.cpu_count()} cores")
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    images, labels = digits(1024)
    net = Net()
    train(net, images, labels, args.steps, args.batch)
    with torch.no_grad():
        right = (net(images[:256]).argmax(dim=1) == labels[:256]).float().mean()
    print(f"accuracy {right.item():.2f}")


if __name__ == "__main__":
    main()
