"""Memory layout: read memory in the order in which it lies.

**In short:** reading across the rows fetches a whole cache line, or sector, for each number; make the copy in row order once.

```text
memory   transposed_view     contiguous_once
row 0    █░░░░░░░░░░░░░░░    ████████████████
row 1    █░░░░░░░░░░░░░░░    ░░░░░░░░░░░░░░░░
row 2    █░░░░░░░░░░░░░░░    ░░░░░░░░░░░░░░░░
row 3    █░░░░░░░░░░░░░░░    ░░░░░░░░░░░░░░░░
         32 sectors          4 sectors
         █ what the threads of one warp read
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `transposed_view` | the rows of a transposed view | baseline, 467 us | every read jumps to another row of the memory |
| `contiguous_each_step` | `contiguous()` in every step | 0.78x, 596 us | on a GPU the copy costs what the strided read costs |
| `contiguous_once` | `contiguous()` before the steps | 3.6x, 130 us; 12x on one core (n=2000) | everything is read in order |

## Why jumps are slow

A transpose moves nothing: it swaps the strides. The step scales such a view and writes the result
row by row.

A CPU fetches a cache line of 64 bytes for each 4 that it uses, and finds it gone from the nearest
cache when it comes back. Each line is on another page, too, more than the first TLB (the cache of
page addresses) holds. A GPU joins the accesses of the 32 threads of a warp (*coalescing*). Across
the rows each thread needs a sector of 32 bytes of its own:

    32 sectors instead of 4 = 8 times the bytes between L2 and SMs

## What contiguous() does

It makes the jumps in a copy, and what follows reads in order. On a CPU that copy works in blocks
and is worth it; on a GPU, made in every step, it loses. Such a copy of 1 GiB took an H100 2.2 ms,
where 0.7 ms is the roof.

## Where there is nothing to gain

Where an operation may choose its order. Element-wise work on the view alone gives the result the
same strides. A sum over the view reorders its loops, on a GPU a norm does too (1 GiB on an H100: 367
us, contiguous 356). Measure before writing `.contiguous()`.

Strides of a power of two are even slower on a CPU, because whole columns compete for the same cache
sets: `--sweep n` goes from 1000 to 1024. On a large GPU only n=8192 does not fit into the L2.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="data movement",
    roof="device memory",
    params={"n": 8192},
    cpu={"n": 2000},
    smoke={"n": 256},
    sweep={"n": (500, 1000, 1024, 2000, 2048, 8192)},
    ladder=True,
    item="element",
    claim="our own measurement: 12x on one core of a Xeon (n=2000)",
    terms=("strides", "contiguous", "transpose", "row-major"),
)


@scenario.variant
def transposed_view(lab, n):
    """The rows of a transposed view: every read jumps."""
    view = _view(lab, n)
    return _scaled(lab, lambda: view, view)


@scenario.variant
def contiguous_each_step(lab, n):
    """The view is copied into row order in every step."""
    view = _view(lab, n)
    return _scaled(lab, view.contiguous, view, copied=True)


@scenario.variant
def contiguous_once(lab, n):
    """The copy is made once, before the steps."""
    rows = _view(lab, n).contiguous()
    return _scaled(lab, lambda: rows, rows)


def _view(lab, n):
    return torch.rand(n, n, device=lab.device).t()


def _scaled(lab, rows, data, copied=False):
    out = torch.empty(data.shape, device=lab.device)
    return Work(
        lambda: torch.mul(rows(), 2, out=out),
        bytes=data.nbytes * (4 if copied else 2),
        flops=data.numel(),
        dtype="fp32",
        items=data.numel(),
        inputs=data,
    )
