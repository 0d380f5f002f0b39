"""Train a perceptron with Adam."""

import torch
from torch import nn
from torch.nn import functional

torch.set_num_threads(1)
torch.manual_seed(0)

DEPTH = 60
WIDTH = 64
BATCH = 128

layers = []
for _ in range(DEPTH):
    layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU()]
model = nn.Sequential(*layers)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
inputs = torch.rand(BATCH, WIDTH)
targets = torch.rand(BATCH, WIDTH)


def step():
    optimizer.zero_grad()
    loss = functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.detach()
