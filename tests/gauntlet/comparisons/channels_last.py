"""A convolution whose channels stand together in memory."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")


def operands():
    return torch.randn(2, 16, 16, 16), torch.randn(16, 16, 3, 3)


@scenario.variant
def channels_first(lab):
    x, weight = operands()
    return Work(lambda: torch.nn.functional.conv2d(x, weight, padding=1), inputs=(x, weight))


@scenario.variant
def channels_last(lab):
    x, weight = (tensor.to(memory_format=torch.channels_last) for tensor in operands())
    return Work(lambda: torch.nn.functional.conv2d(x, weight, padding=1), inputs=(x, weight))


@scenario.variant
def unfolded(lab):
    x, weight = operands()

    def step():
        columns = torch.nn.functional.unfold(x, 3, padding=1)
        return (weight.view(16, -1) @ columns).view(2, 16, 16, 16)

    return Work(step, inputs=(x, weight))
