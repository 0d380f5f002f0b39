"""`mul` and `add_` against `addcmul`, over buffers that stay in a cache.

`build_s`: what every build of the two operations takes; the other one is built at once.
"""

import time

import torch

from gpulab import KiB, MiB, Scenario, Work

scenario = Scenario("pairs", params={"nbytes": 8 * MiB, "build_s": 0.0}, cpu={"nbytes": 256 * KiB})


@scenario.variant
def baseline(lab, nbytes, build_s):
    """Two operations, the product in between."""
    return _two_operations(lab, nbytes, build_s)


@scenario.variant
def twin(lab, nbytes, build_s):
    """The same code once more."""
    return _two_operations(lab, nbytes, build_s)


@scenario.variant
def unlike(lab, nbytes):
    """One fused operation."""
    a, b, c, out = _buffers(lab, nbytes)
    return Work(lambda: torch.addcmul(c, a, b, out=out), inputs=(a, b, c), output=out)


def _two_operations(lab, nbytes, build_s):
    time.sleep(build_s)
    a, b, c, out = _buffers(lab, nbytes)
    return Work(lambda: torch.mul(a, b, out=out).add_(c), inputs=(a, b, c), output=out)


def _buffers(lab, nbytes):
    *inputs, out = (torch.rand(nbytes // 4, device=lab.device) for _ in range(4))
    return *inputs, out
