"""Cache footprint: the same copy is several times faster once its data stays in the cache.

A copy reads and writes every byte once, and device memory sets its pace, until source and destination together
fit into the last-level cache and are still there at the next step. Then the very same operation moves its bytes
at the cache's rate, far above the roof that device memory is.

That is why a benchmark on small data flatters, and why a point above 100 % of the memory roof is no mistake: it says
where the data was. In a model the data of one layer is rarely still there when the layer runs again.

Each variant copies a footprint that is a fraction or a multiple of the last-level cache; they are compared per byte.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="data movement",
    roof="device memory",
    clock="device",
    per="item",
    params={"cache_mib": 0},
    smoke={"cache_mib": 1},
    claim="over 100 % of the device-memory roof once it fits",
)
UNKNOWN_MIB = 32


@scenario.variant
def eight_times(lab, cache_mib):
    """Eight times the cache: every byte comes from memory."""
    return _copy(lab, cache_mib, 8)


@scenario.variant
def four_times(lab, cache_mib):
    """Four times the cache."""
    return _copy(lab, cache_mib, 4)


@scenario.variant
def twice(lab, cache_mib):
    """Twice the cache: what is written last is still there, and is not what is read first."""
    return _copy(lab, cache_mib, 2)


@scenario.variant
def exactly(lab, cache_mib):
    """As large as the cache: some of it is always pushed out."""
    return _copy(lab, cache_mib, 1)


@scenario.variant
def half(lab, cache_mib):
    """Half the cache: it fits."""
    return _copy(lab, cache_mib, 1 / 2)


@scenario.variant
def quarter(lab, cache_mib):
    """A quarter of the cache."""
    return _copy(lab, cache_mib, 1 / 4)


@scenario.variant
def eighth(lab, cache_mib):
    """An eighth of the cache."""
    return _copy(lab, cache_mib, 1 / 8)


def _copy(lab, cache_mib, share):
    cache = cache_mib * MiB or lab.l2_bytes or UNKNOWN_MIB * MiB
    smallest = cache // 64  # floats of either side, at an eighth of the cache
    source = torch.rand(smallest, device=lab.device).repeat(int(8 * share))  # it begins alike at every size
    out = torch.empty_like(source)
    moved = source.nbytes + out.nbytes

    def output():
        return out.view(-1, smallest).aminmax(dim=0)  # of equal rows, all of which have to be copied

    return Work(lambda: out.copy_(source), items=moved / MiB, bytes=moved, inputs=source, output=output)
