"""A training step without the update of its optimizer: it returns the same loss again and again."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 64


@scenario.variant
def reference(lab):
    return training(update=True)


@scenario.variant
def no_optimizer_update(lab):
    """Caught by: timed steps or outputs"""
    return training(update=False)


def training(update):
    x, model = torch.randn(N, N), torch.nn.Linear(N, N)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        if update:
            optimizer.step()
        return loss

    return Work(step, inputs=x, state=(model, optimizer))
