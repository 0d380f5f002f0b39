"""Measure the free space of a disk before each step of training, and train."""

import subprocess
import sys

import torch
from torch import nn
from torch.nn import functional

torch.set_num_threads(1)
torch.manual_seed(0)

WIDTH = 512
BATCH = 64
EVERY = 1
COMMAND = [sys.executable, "-S", "-c", "import shutil; print(shutil.disk_usage('.').free)"]

model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.rand(BATCH, WIDTH)
targets = torch.rand(BATCH, WIDTH)


def free_bytes():
    answer = subprocess.run(COMMAND, capture_output=True, check=True)
    return int(answer.stdout)


def train():
    optimizer.zero_grad()
    loss = functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.detach()


def step():
    if free_bytes() < 1:
        raise SystemExit("no space left")
    for _ in range(EVERY):
        loss = train()
    return loss
