"""A step of training, its state named in different ways."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, N = 32, 64


def parts():
    model = torch.nn.Sequential(torch.nn.Linear(N, N), torch.nn.ReLU(), torch.nn.Linear(N, 1))
    return model, torch.randn(ROWS, N), torch.randn(ROWS, 1)


@scenario.variant
def by_optimizer(lab):
    model, x, y = parts()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

    def step():
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Work(step, inputs=(x, y), state=(model, optimizer))


@scenario.variant
def by_hand(lab):
    model, x, y = parts()
    parameters = list(model.parameters())

    def step():
        loss = (model(x) - y).square().mean()
        for parameter, gradient in zip(
            parameters, torch.autograd.grad(loss, parameters), strict=True
        ):
            parameter.data.sub_(gradient, alpha=1e-2)
        return loss

    return Work(step, inputs=(x, y), state=parameters)


@scenario.variant
def gradients_in_two_parts(lab):
    """Half a batch at a time."""
    model, x, y = parts()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

    def step():
        optimizer.zero_grad()
        total = 0.0
        for rows, labels in zip(x.chunk(2), y.chunk(2), strict=True):
            loss = (model(rows) - labels).square().mean() / 2
            loss.backward()
            total = total + loss.detach()
        optimizer.step()
        return total

    return Work(step, inputs=[x, y], state=[model, optimizer])
