"""SGD with momentum over small tensors, in place and by hand."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
COUNT, N = 20, 500


def operands():
    weights, gradients = ([torch.randn(N) for _ in range(COUNT)] for _ in range(2))
    return weights, gradients, [torch.zeros(N) for _ in range(COUNT)]


@scenario.variant
def loop(lab):
    weights, gradients, moments = operands()

    def step():
        for weight, gradient, moment in zip(weights, gradients, moments, strict=True):
            moment.mul_(0.9).add_(gradient)
            weight.sub_(moment, alpha=0.01)
        return weights

    return Work(step, inputs=gradients, state=(weights, moments))


@scenario.variant
def foreach(lab):
    weights, gradients, moments = operands()

    def step():
        torch._foreach_mul_(moments, 0.9)
        torch._foreach_add_(moments, gradients)
        torch._foreach_add_(weights, moments, alpha=-0.01)
        return weights

    return Work(step, inputs=gradients, state=(weights, moments))
