"""A small network as a user has it: in modes, in eager and functional form; only data is named."""

import functools

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 64


def model():
    return torch.nn.Sequential(torch.nn.Linear(N, N), torch.nn.GELU(), torch.nn.Linear(N, N)).eval()


@scenario.variant
def with_gradients(lab):
    network, x = model(), torch.randn(32, N)
    return Work(lambda: network(x), inputs=x)


@scenario.variant
def no_grad(lab):
    network, x = model(), torch.randn(32, N)

    @torch.no_grad()
    def step():
        return network(x)

    return Work(step, inputs=x)


@scenario.variant
def inference_mode(lab):
    network, x = model(), torch.randn(32, N)
    return Work(lambda: network(x), inputs=x, context=torch.inference_mode)


@scenario.variant
def functional(lab):
    network, x = model().requires_grad_(False), torch.randn(32, N)
    first, _, last = network

    def step():
        hidden = torch.addmm(first.bias, x, first.weight.T)
        return torch.addmm(last.bias, torch.nn.functional.gelu(hidden), last.weight.T)

    return Work(step, inputs=x)


@scenario.variant
def half_precision(lab):
    network, x = model().requires_grad_(False).bfloat16(), torch.randn(32, N)
    return Work(lambda: network(x.bfloat16()).float(), inputs=x, dtype="bf16")


@scenario.variant
def autocast(lab):
    network, x = model().requires_grad_(False), torch.randn(32, N)
    context = functools.partial(torch.autocast, "cpu", torch.bfloat16)
    return Work(lambda: network(x), inputs=x, dtype="bf16", context=context)
