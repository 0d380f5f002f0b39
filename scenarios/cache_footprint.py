"""Cache footprint: the same reads are faster where the data is still in the cache.

Every variant reads the same array the same number of times, and sums up each row every time. Only
the order differs. The array is divided into chunks, and all passes over a chunk are made before the
next chunk. A chunk that fits into the last-level cache (on a GPU the L2) comes from memory in its
first pass only; one that does not fit comes from memory in every pass. This is cache blocking, or
tiling: it is how a matrix product (matmul) reads its operands from memory far fewer times than it
uses them.

All of it is one call, on a GPU one kernel, so that small chunks cost no more launches than large
ones. The scenario declares every byte that is read, so a rate well above 100 % of the device-memory
roof is correct. It says that most of the bytes came from the cache. The first pass limits the gain:
of n passes one n-th comes from memory, so with 3 passes, as on a CPU here, at most 3x is possible,
and with 8 on a GPU at most 8x, however fast the cache is. On a GPU the cache itself is the nearer
bound: an H200's L2 reads 8.4 TB/s, twice as much as its memory, and chunks that fit gained 1.7-1.8x
(measured here).

The step may come early. On an H200 (60 MiB of L2) chunks of 60 MiB gained nothing, and chunks of 30
MiB all that there is to gain: the two halves of the L2 may keep copies of the same data, and
reading in a circle pushes out just what comes next. On a CPU 16 MiB stand for the last level,
whatever it is, and `cache_mib` names another size. Where the real one is larger (hundreds of MiB on
a server, shared with other programs), the rate rises little from `twice` on, and more at an eighth,
2 MiB, which a core's own L2 may hold (1.3x at half, 1.7-2.0x at an eighth, measured here).

A benchmark on small data looks too fast for the same reason: its second step finds all of it in the
cache. In a model the data of one layer is rarely still there when that layer runs again. Measure
with the sizes that the program has, or empty the caches between steps, as `Scenario(cache="cold")`
does.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="data movement",
    roof="device memory",
    clock="device",
    params={"cache_mib": 0, "passes": 8},
    cpu={"cache_mib": 16, "passes": 3},
    smoke={"cache_mib": 1, "passes": 2},
    item="mebibyte",
    claim="our own measurement: 1.7-1.8x on an H200 once a chunk fits",
)
UNKNOWN_MIB = 32
_WIDTH = 1024  # floats in a row


@scenario.variant
def eight_times(lab, cache_mib, passes):
    """One chunk of eight times the cache: every pass comes from memory."""
    return _sums(lab, cache_mib, passes, 1)


@scenario.variant
def twice(lab, cache_mib, passes):
    """Chunks of twice the cache: on a GPU each pass pushes out what the next one reads first."""
    return _sums(lab, cache_mib, passes, 4)


@scenario.variant
def exactly(lab, cache_mib, passes):
    """As large as the cache: on a GPU little or nothing of it is left for the next pass."""
    return _sums(lab, cache_mib, passes, 8)


@scenario.variant
def half(lab, cache_mib, passes):
    """Half the cache: it fits, and only the first pass comes from memory."""
    return _sums(lab, cache_mib, passes, 16)


@scenario.variant
def eighth(lab, cache_mib, passes):
    """An eighth of the cache."""
    return _sums(lab, cache_mib, passes, 64)


def _sums(lab, cache_mib, passes, chunks):
    cache = cache_mib * MiB or lab.l2_bytes or UNKNOWN_MIB * MiB
    rows = 8 * cache // 4 // _WIDTH // 64 * 64  # so that there are 64 equal chunks
    # No two rows are equal, so none can stand for another.
    data = torch.rand(rows, 1, device=lab.device) + torch.rand(1, _WIDTH, device=lab.device)
    # no copy: every pass is a view
    chunk = data.view(chunks, 1, rows // chunks, _WIDTH).expand(-1, passes, -1, -1)
    sums = torch.empty(passes, rows, device=lab.device)  # in one order for all variants
    of_chunks = sums.view(passes, chunks, rows // chunks).transpose(0, 1)
    return Work(
        lambda: torch.sum(chunk, dim=-1, out=of_chunks),
        items=passes * data.nbytes / MiB,
        bytes=passes * data.nbytes,
        flops=passes * data.numel(),
        dtype="fp32",
        inputs=data,
        output=sums.view(-1),
    )
