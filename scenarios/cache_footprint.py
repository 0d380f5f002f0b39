"""Cache footprint: the same reads are faster where the data is still in the cache.

**In short:** read a chunk that fits into the cache as often as you need before the next one, and it comes from memory once.

```text
              time of 8 passes ────────────────────────────▶
eight_times   ████████████████████████████████████████████
twice         ████████████████████████████████████████████
exactly       ████████████████████████████████████████████
half          ██▒▒▒▒▒▒▒▒▒▒▒██▒▒▒▒▒▒▒▒▒▒▒
eighth        █▒▒▒▒█▒▒▒▒█▒▒▒▒█▒▒▒▒█▒▒▒▒
              █ first pass over a chunk, from memory
              ▒ its other passes, from the cache
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `eight_times` | one chunk, eight times the cache | baseline, 946 us | each pass comes from memory |
| `twice` | chunks of twice the cache | *same* | a pass pushes out what the next one reads first |
| `exactly` | chunks as large as the cache | *same* | little or nothing is left for the next pass |
| `half` | chunks of half the cache | 1.7x | only the first pass comes from memory |
| `eighth` | chunks of an eighth | 1.8x | as for `half`, and 6 % better still |

## What is the same

Every variant reads the same array the same number of times, and sums up each row every time. Only
the order differs: all passes over a chunk are made before the next chunk. This is cache blocking,
or tiling, as a matrix product (matmul) does it. All of it is one call, on a GPU one kernel, so small
chunks cost no more launches.

## How much it can gain

The first of n passes comes from memory:

    gain <= n, which is 8 on a GPU and 3 on a CPU

On a GPU the cache itself is the nearer bound: an H200's L2 reads 8.4 TB/s, twice as much as its
memory. The scenario declares every byte that is read, so a rate well above 100 % of the memory roof
is correct. It says that most bytes came from the cache.

## Where the step comes

It may come early. Of an H200's 60 MiB, the two halves may keep copies of the same data. Reading in
a circle pushes out just what comes next.

On a CPU 16 MiB stand for the last level, and `cache_mib` names another size. Where the real one is
larger, `eighth` gains most, as a core's own L2 may hold 2 MiB (1.3x at half, 1.7-2.0x at an eighth,
measured here).

## What a benchmark on small data reports

Its second step finds all of it in the cache, as a model's layer rarely does. Measure with the sizes
of the program, or empty the caches between steps, as `Scenario(cache="cold")` does.
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
    terms=("l2", "cache blocking", "working set"),
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
