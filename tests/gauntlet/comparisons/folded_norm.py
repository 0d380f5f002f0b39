"""A layer and its normalisation for inference, or both folded into one in the build."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, N = 64, 128


def parts():
    linear, norm = torch.nn.Linear(N, N), torch.nn.BatchNorm1d(N)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    return (
        linear.eval().requires_grad_(False),
        norm.eval().requires_grad_(False),
        torch.randn(ROWS, N),
    )


@scenario.variant
def two_layers(lab):
    linear, norm, x = parts()
    return Work(lambda: norm(linear(x)), inputs=x)


@scenario.variant
def folded(lab):
    linear, norm, x = parts()
    layer = torch.nn.utils.fusion.fuse_linear_bn_eval(linear, norm)
    return Work(lambda: layer(x), inputs=x)
