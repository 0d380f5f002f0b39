"""Pinned memory: page-locked host buffers copy at link speed.

The copy engine cannot read pageable memory, so the driver first stages it through a
pinned buffer of its own. Allocate pinned, and that step is gone.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="data movement",
    needs=("cuda",),
    roof="host to device",
    params={"mib": 256},
    smoke={"mib": 1},
    claim="2-6x faster transfers",
)


@scenario.variant
def pageable(lab, mib):
    """Pageable source: the driver stages every copy."""
    return _copy(lab, torch.rand(mib * MiB // 4))


@scenario.variant
def pinned(lab, mib):
    """Page-locked source: the copy engine reads it directly."""
    return _copy(lab, torch.rand(mib * MiB // 4).pin_memory())


def _copy(lab, host):
    device = torch.empty_like(host, device=lab.device)
    return Work(lambda: device.copy_(host, non_blocking=True), bytes=host.nbytes)
