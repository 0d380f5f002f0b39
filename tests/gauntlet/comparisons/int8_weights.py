"""A layer whose weights and inputs are quantized to eight bits."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, N = 64, 256


def operands():
    return torch.randn(ROWS, N), torch.randn(N, N) / 16


@scenario.variant
def fp32(lab):
    x, weight = operands()
    return Work(lambda: x @ weight, inputs=(x, weight))


@scenario.variant
def int8(lab):
    """Weights quantized in the build, inputs in the step."""
    x, weight = operands()
    scale = weight.abs().amax(0) / 127
    quantized = (weight / scale).round().to(torch.int8)

    def step():
        scale_x = x.abs().amax(1, keepdim=True) / 127
        rows = (x / scale_x).round().to(torch.int8)
        return torch._int_mm(rows, quantized).float() * scale_x * scale

    return Work(step, inputs=(x, quantized, scale), dtype="int8")
