"""Identical code whose builds take 1.1 s each, beside another implementation that is built at
once.
"""

import time

import torch

from gpulab import KiB, MiB, Scenario, Work

scenario = Scenario("pairs", params={"nbytes": 8 * MiB}, cpu={"nbytes": 256 * KiB})
BUILD_S = 1.1


@scenario.variant
def baseline(lab, nbytes):
    """Two operations, built slowly."""
    return _two_operations(lab, nbytes)


@scenario.variant
def twin(lab, nbytes):
    """The same code once more."""
    return _two_operations(lab, nbytes)


@scenario.variant
def unlike(lab, nbytes):
    """One fused operation, built at once."""
    a, b, c, out = _buffers(lab, nbytes)
    return Work(lambda: torch.addcmul(c, a, b, out=out), inputs=(a, b, c), output=out)


def _two_operations(lab, nbytes):
    time.sleep(BUILD_S)
    a, b, c, out = _buffers(lab, nbytes)
    return Work(lambda: torch.mul(a, b, out=out).add_(c), inputs=(a, b, c), output=out)


def _buffers(lab, nbytes):
    *inputs, out = (torch.rand(nbytes // 4, device=lab.device) for _ in range(4))
    return *inputs, out
