"""Learn the flow map of a pendulum; the integrator makes the training data."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    trajectories: int = 512
    length: int = 40
    step: float = 0.1
    width: int = 512
    updates: int = 260
    batch: int = 192


def acceleration(angle):
    return -9.81 * torch.sin(angle)


def integrate(settings):
    """Return states by the leapfrog method, which needs double precision."""
    angle = torch.empty(settings.trajectories, dtype=torch.float64).uniform_(-2, 2)
    speed = torch.empty(settings.trajectories, dtype=torch.float64).uniform_(-1, 1)
    fine = settings.step / 20
    states = []
    for _ in range(settings.length):
        states.append(torch.stack([angle, speed], dim=1))
        for _ in range(20):
            half = speed + 0.5 * fine * acceleration(angle)
            angle = angle + fine * half
            speed = half + 0.5 * fine * acceleration(angle)
    return torch.stack(states, dim=1)


def pairs(states):
    before = states[:, :-1].flatten(0, 1)
    after = states[:, 1:].flatten(0, 1)
    return before, after


class FlowMap(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(
            nn.Linear(2, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 2),
        )

    def forward(self, state):
        return state + self.inner(state)


def fit(flow, before, after, settings):
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-3)
    for update in range(settings.updates):
        rows = torch.randint(len(before), (settings.batch,))
        error = (flow(before[rows]) - after[rows]).square().mean()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        if update % 50 == 0:
            print(f"update {update}: {error.item():.6f}")


def main():
    settings = Settings()
    torch.manual_seed(9)
    torch.set_num_threads(1)
    states = integrate(settings)
    before, after = pairs(states.float())
    flow = FlowMap(settings.width)
    fit(flow, before, after, settings)
    with torch.no_grad():
        drift = (flow(before) - after).double().abs().mean()
    print(f"mean error of one step {drift.item():.5f}")


if __name__ == "__main__":
    main()
