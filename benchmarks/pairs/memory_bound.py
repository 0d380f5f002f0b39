"""Scaling an array that no cache holds: a copy that is then multiplied in place, against one
pass.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario("pairs", params={"nbytes": 256 * MiB}, cpu={"nbytes": 32 * MiB})


@scenario.variant
def baseline(lab, nbytes):
    """Two passes over the result."""
    return _two_passes(lab, nbytes)


@scenario.variant
def twin(lab, nbytes):
    """The same code once more."""
    return _two_passes(lab, nbytes)


@scenario.variant
def unlike(lab, nbytes):
    """One pass."""
    source, out = _buffers(lab, nbytes)
    return Work(lambda: torch.mul(source, 2, out=out), inputs=source, output=out)


def _two_passes(lab, nbytes):
    source, out = _buffers(lab, nbytes)
    return Work(lambda: out.copy_(source).mul_(2), inputs=source, output=out)


def _buffers(lab, nbytes):
    source = torch.rand(nbytes // 4, device=lab.device)
    return source, torch.empty_like(source)
