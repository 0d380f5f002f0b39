"""Adam by hand, whose count of steps is a part of its state."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
ROWS, N = 128, 256


@scenario.variant
def reference(lab):
    return training(gradients=10**9)


@scenario.variant
def adam_without_gradients(lab):
    """Computes the gradient in the first three steps of a run, and moves on by their moments.

    Caught by: timed steps
    """
    return training(gradients=3)


def training(gradients):
    x, y, weight = torch.randn(ROWS, N), torch.randn(ROWS, N), torch.randn(N, N) / 16
    mean, variance, count = torch.zeros(N, N), torch.zeros(N, N), torch.zeros((), dtype=torch.int64)

    def step():
        number = int(count.add_(1))
        if number <= gradients:
            gradient = x.T @ (x @ weight - y)
            mean.lerp_(gradient, 0.1)
            variance.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        scale = 1e-3 / (1 - 0.9**number)
        return weight.addcdiv_(
            mean, (variance / (1 - 0.999**number)).sqrt_().add_(1e-8), value=-scale
        )

    return Work(step, inputs=(x, y), state=(weight, mean, variance, count))
