"""A step of Adam over a few small layers."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N, LAYERS = 48, 6


@scenario.variant
def loop(lab):
    return training(foreach=False)


@scenario.variant
def foreach(lab):
    return training(foreach=True)


@scenario.variant
def fused(lab):
    return training(fused=True)


def training(**implementation):
    parameters = [torch.randn(N, N, requires_grad=True) for _ in range(LAYERS)]
    gradients = [torch.randn(N, N) for _ in parameters]
    optimizer = torch.optim.Adam(parameters, lr=1e-2, **implementation)

    def step():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
        return parameters

    return Work(step, inputs=gradients, state=(parameters, optimizer))
