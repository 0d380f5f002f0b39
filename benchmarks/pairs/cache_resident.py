"""`mul` and `add_` against `addcmul`, over buffers that stay in a cache."""

import torch

from gpulab import KiB, MiB, Scenario, Work

scenario = Scenario("pairs", params={"nbytes": 8 * MiB}, cpu={"nbytes": 256 * KiB})


@scenario.variant
def baseline(lab, nbytes):
    """Two operations, the product in between."""
    return _two_operations(lab, nbytes)


@scenario.variant
def twin(lab, nbytes):
    """The same code once more."""
    return _two_operations(lab, nbytes)


@scenario.variant
def unlike(lab, nbytes):
    """One fused operation."""
    a, b, c, out = _buffers(lab, nbytes)
    return Work(lambda: torch.addcmul(c, a, b, out=out), inputs=(a, b, c), output=out)


def _two_operations(lab, nbytes):
    a, b, c, out = _buffers(lab, nbytes)
    return Work(lambda: torch.mul(a, b, out=out).add_(c), inputs=(a, b, c), output=out)


def _buffers(lab, nbytes):
    *inputs, out = (torch.rand(nbytes // 4, device=lab.device) for _ in range(4))
    return *inputs, out
