"""What most programs here share: a tiny model, and some steps of its training."""

import torch


def model():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)]
    return torch.nn.Sequential(*layers)


def train(net=None, optimizer=None, steps=1000):
    """The loss after so many steps."""
    net = net or model()
    optimizer = optimizer or torch.optim.SGD(net.parameters(), lr=1e-3)
    x = torch.randn(32, 8)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (net(x) - 1).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()
