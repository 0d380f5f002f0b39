"""Memory layout: read memory in the order in which it lies.

A transpose moves nothing: it swaps the strides, and reading the view along its rows jumps from one
row of the memory to the next. The step scales such a view and writes the result row by row. A CPU
fetches a cache line of 64 bytes for each 4 that it uses, and finds it gone from the nearest cache
when it comes back for the next 4; each line is on another page, too, and those are more than the
first TLB (the cache of page addresses) holds. A GPU joins the accesses of the 32 threads of a warp
(*coalescing*): neighbouring floats need 4 sectors of 32 bytes. Across the rows each thread needs
its own sector, 32 in all, so 8 times as many bytes pass between the L2 cache and the SMs (streaming
multiprocessors), even where the L2 keeps the sectors for the next reads.

`contiguous()` does not avoid the jumps: it makes them in a copy, and what follows reads in order.
On a CPU that copy works in blocks and is worth it; on a GPU it costs what the strided read costs,
so made in every step it loses. Made once, outside the loop, it wins on both. Such a copy of 1 GiB
took an H100 2.2 ms, where 0.7 ms is the roof, so expect a factor of about 3 there.

There is nothing to gain where an operation may choose its order. Element-wise work on the view
alone, with a new result, goes through memory in order and gives the result the same strides. A sum
over the view reorders its loops, on a GPU a norm does too: norms of the rows of such a view of 1
GiB took an H100 367 us, and 356 us contiguous. Strided reads remain where operands have different
layouts, or where the layout of the result is given. Measure before writing `.contiguous()`.

Strides of a power of two are even slower on a CPU, because whole columns compete for the same few
cache sets (conflict misses): `--sweep n` goes from n=1000 to n=1024 and from 2000 to 2048. On a
large GPU only the last size, 8192, does not fit into the L2.
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
