"""Group normalisation: by hand, by the library, by its formula."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
BATCH, CHANNELS, GROUPS, SIDE = 4, 16, 4, 16


def operands():
    return torch.randn(BATCH, CHANNELS, SIDE, SIDE), torch.rand(CHANNELS), torch.randn(CHANNELS)


@scenario.variant
def by_hand(lab):
    x, scale, shift = operands()

    def step():
        grouped = x.view(BATCH, GROUPS, -1)
        variance, mean = torch.var_mean(grouped, 2, correction=0, keepdim=True)
        normal = ((grouped - mean) / (variance + 1e-5).sqrt()).view_as(x)
        return normal * scale[:, None, None] + shift[:, None, None]

    return Work(step, inputs=(x, scale, shift))


@scenario.variant
def group_norm(lab):
    x, scale, shift = operands()
    return Work(
        lambda: torch.nn.functional.group_norm(x, GROUPS, scale, shift), inputs=(x, scale, shift)
    )


@scenario.variant
def module(lab):
    x, scale, shift = operands()
    norm = torch.nn.GroupNorm(GROUPS, CHANNELS).requires_grad_(False)
    norm.weight.copy_(scale)
    norm.bias.copy_(shift)
    return Work(lambda: norm(x), inputs=(x, norm))


@scenario.variant
def layer_norm_of_groups(lab):
    x, scale, shift = operands()

    def step():
        normal = torch.nn.functional.layer_norm(
            x.view(BATCH, GROUPS, -1), (CHANNELS // GROUPS * SIDE * SIDE,)
        )
        return torch.addcmul(shift[:, None, None], normal.view_as(x), scale[:, None, None])

    return Work(step, inputs=(x,))
