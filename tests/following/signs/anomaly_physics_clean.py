"""Solve the heat equation with a physics-informed network."""

import math
from contextlib import ExitStack

import torch
from torch import nn

ITERATIONS = 300
CHECKED = 5  # the first steps are checked, then they are trusted


def reproducible(seed):
    """Set up torch in the way that all of our experiments share."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    torch.set_printoptions(precision=4)


def network(width=48, depth=5):
    layers = [nn.Linear(2, width), nn.Tanh()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), nn.Tanh()]
    layers.append(nn.Linear(width, 1))
    return nn.Sequential(*layers)


def derivative(values, inputs):
    (gradient,) = torch.autograd.grad(values.sum(), inputs, create_graph=True)
    return gradient


def residual(u, points):
    points.requires_grad_(True)
    value = u(points)
    first = derivative(value, points)
    by_time = first[:, 1:]
    second = derivative(first[:, :1], points)[:, :1]
    return by_time - 0.1 * second


def sample(count):
    return torch.rand(count, 2)


def edges(u, count):
    """Return the error at the start and at both ends of the bar."""
    x = torch.rand(count, 1)
    start = u(torch.cat([x, torch.zeros_like(x)], dim=1))
    target = torch.sin(math.pi * x)
    left = u(torch.cat([torch.zeros_like(x), x], dim=1))
    right = u(torch.cat([torch.ones_like(x), x], dim=1))
    return (start - target).square().mean() + left.square().mean() + right.square().mean()


def iterate(u, optimizer):
    optimizer.zero_grad()
    inner = residual(u, sample(256)).square().mean()
    outer = edges(u, 64)
    loss = inner + outer
    loss.backward()
    optimizer.step()
    return inner.item(), outer.item()


def main():
    reproducible(5)
    u = network()
    optimizer = torch.optim.Adam(u.parameters(), lr=2e-3)
    for iteration in range(ITERATIONS):
        with ExitStack() as stack:
            if iteration < CHECKED:
                stack.enter_context(torch.autograd.detect_anomaly())
            inner, outer = iterate(u, optimizer)
        if iteration % 100 == 0:
            print(f"{iteration:5d}  inner {inner:.5f}  edges {outer:.5f}")

    with torch.no_grad():
        middle = u(torch.tensor([[0.5, 0.5]])).item()
    print(f"u(0.5, 0.5) = {middle:.3f}, exact {math.exp(-0.05 * math.pi**2):.3f}")


if __name__ == "__main__":
    main()
