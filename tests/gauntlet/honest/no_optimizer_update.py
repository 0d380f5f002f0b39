"""The same training step with another implementation of its optimizer."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 64


@scenario.variant
def reference(lab):
    return training(foreach=False)


@scenario.variant
def no_optimizer_update(lab):
    return training(foreach=True)


def training(foreach):
    x, model = torch.randn(N, N), torch.nn.Linear(N, N)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, foreach=foreach)

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Work(step, inputs=x, state=(model, optimizer))
