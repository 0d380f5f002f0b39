"""TF32 is allowed around the steps of one variant, and as it was after them."""

import contextlib

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 192


@contextlib.contextmanager
def tf32():
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


@contextlib.contextmanager
def high_precision():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision(before)


@scenario.variant
def fp32(lab):
    a, b = torch.randn(N, N), torch.randn(N, N)
    return Work(lambda: a @ b, inputs=(a, b))


@scenario.variant
def allow_tf32(lab):
    a, b = torch.randn(N, N), torch.randn(N, N)
    return Work(lambda: a @ b, inputs=(a, b), dtype="tf32", context=tf32)


@scenario.variant
def matmul_precision(lab):
    a, b = torch.randn(N, N), torch.randn(N, N)
    return Work(lambda: a @ b, inputs=(a, b), dtype="tf32", context=high_precision)


@scenario.variant
def within_the_step(lab):
    a, b = torch.randn(N, N), torch.randn(N, N)

    def step():
        with tf32():
            return a @ b

    return Work(step, inputs=(a, b), dtype="tf32")
