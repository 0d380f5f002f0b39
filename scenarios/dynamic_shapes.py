"""Dynamic shapes: code for fixed shapes is compiled again for every new shape.

**In short:** let lengths be symbolic, or pad batches to a few lengths, and a handful of compilations serves all shapes.

```text
first pass, six batches   ▒ this batch is compiled   · code exists

length, % of longest   100   61   29   83   13   47   compilations
recompiled               ▒    ▒    ▒    ▒    ▒    ▒   6
automatic                ▒    ▒    ·    ·    ·    ·   2
dynamic                  ▒    ·    ·    ·    ·    ·   1
padded, graphed          ▒    ·    ▒    ·    ▒    ·   3
  padded to            100  100   50  100   25   50
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `eager` | not compiled | baseline, 585 us | every shape costs the same |
| `recompiled` | `dynamic=False` | 1.7x to 2.1x after 6 compilations | a compilation for each length, then guards of one after the other |
| `automatic` | the default | 1.8x to 2.2x after 2 | the second length makes that dimension symbolic |
| `dynamic` | `dynamic=True` | 1.6x to 2.0x after 1 | every dimension is symbolic, the width too: the compiler knows less |
| `padded` | batches padded to three lengths | 1.2x to 1.4x, *inconclusive*, after 3 | 28 % more rows, and another pass to move each batch |
| `graphed` | as `padded`, each bucket a CUDA graph | 2.6x after 3 | one launch a batch; its input copied in and its result out |

## Two times to tell apart

A step is one pass over six batches, with the same outputs for all, once everything is compiled. So
the speedup is the steady state. What comes first is reported beside it: compilations, and the
seconds of the first pass.

    passes until compiling has paid = those seconds / seconds saved per pass

Compiled code is kept on disk, so those seconds are of a later process. The first one on a machine,
or with another version, takes many times that. (Delete /tmp/torchinductor_USER, or the folder that
TORCHINDUCTOR_CACHE_DIR names.)

## Fixed, symbolic, or padded

Compiled code is made for the shapes it was traced with. At every call guards check shapes and
types. A symbolic dimension is one whose length the code takes as a variable.

Padding makes the data fit one of a few lengths, the buckets. Pad where the batch is put together
anyway: then the move costs nothing more. CUDA graphs replay fixed addresses, so they need fixed
shapes: one graph for each bucket. They pay where launches take the time.

## Pitfalls, and where it does not help

- Past eight compilations of one function (`torch._dynamo.config.recompile_limit`) PyTorch runs it
  eagerly, with only a warning; gpulab makes that an error. TORCH_LOGS=recompiles shows the reasons.
- Padding is harmless only where rows do not mix, as here. Attention, means and batch norm need a
  mask.
- Eager code has none of these costs, and may win where shapes never come back.
"""

from contextlib import contextmanager, nullcontext
from time import perf_counter

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="launch and host overhead",
    roof="device memory",
    params={"rows": 8192, "width": 1024},
    cpu={"rows": 1024, "width": 512},
    smoke={"rows": 64, "width": 32},
    sweep={"rows": (512, 2048, 8192, 32768)},
    item="row",
    no_effect_reason="guards and padding cost as much as fused operations save",
    terms=("recompile", "torch.compile", "bucketing", "padding", "guards"),
)
_LENGTHS = (100, 61, 29, 83, 13, 47)
"""Of the batches, in percent of the longest."""
_BUCKETS = (25, 50, 100)


@scenario.variant
def eager(lab, rows, width):
    """Not compiled: every shape costs the same."""
    return _passes(lab, rows, width, _block, traffic=14)


@scenario.variant(needs=("compiler",))
def recompiled(lab, rows, width):
    """`dynamic=False`: a compilation for every length."""
    return _passes(lab, rows, width, torch.compile(_own("recompiled"), dynamic=False))


@scenario.variant(needs=("compiler",))
def automatic(lab, rows, width):
    """The default: the first length as it is, then symbolic lengths for all others."""
    return _passes(lab, rows, width, torch.compile(_own("automatic")))


@scenario.variant(needs=("compiler",))
def dynamic(lab, rows, width):
    """`dynamic=True`: symbolic lengths from the beginning."""
    return _passes(lab, rows, width, torch.compile(_own("dynamic"), dynamic=True))


@scenario.variant(needs=("compiler",))
def padded(lab, rows, width):
    """Batches are padded to three lengths, and only those are compiled: fixed shapes, fewer of them."""
    compiled = torch.compile(_own("padded"), dynamic=False)
    return _passes(lab, rows, width, compiled, buckets=True)


@scenario.variant(needs=("cuda", "compiler"))
def graphed(lab, rows, width):
    """As `padded`, and each bucket is replayed as a CUDA graph."""
    compiled = torch.compile(_own("graphed"), dynamic=False)
    return _passes(lab, rows, width, compiled, buckets=True, graphed=True)


def _block(data, weight, bias):
    scale = torch.rsqrt(data.square().mean(-1, keepdim=True) + 1e-6)
    return data + torch.relu(data * scale * weight + bias)


def _own(name):
    """`_block` by another name, with code of its own: the compiler keeps what it learns of shapes
    by both.
    """
    return type(_block)(_block.__code__.replace(co_name=name), _block.__globals__)


@torch.no_grad()
def _passes(lab, rows, width, block, traffic=2, buckets=False, graphed=False):
    lengths = [rows * percent // 100 for percent in _LENGTHS]
    batches = [torch.randn(length, width, device=lab.device) for length in lengths]
    weight, bias = (torch.randn(width, device=lab.device) for _ in range(2))
    with nullcontext() if block is _block else _reporting(lab):
        run = (
            _padding(block, rows, weight, bias, graphed)
            if buckets
            else lambda data: block(data, weight, bias)
        )
        for data in batches:
            run(data)

    @torch.no_grad()
    def step():
        with lab.useful():
            return [run(data) for data in batches]

    moved = traffic * sum(data.nbytes for data in batches)
    if buckets:  # besides: into the buffer, and for a graph out of it
        moved += (
            4 * width * sum(2 * _bucket(rows, length) + 2 * graphed * length for length in lengths)
        )
    return Work(
        step, bytes=moved, dtype="fp32", items=sum(lengths), inputs=(*batches, weight, bias)
    )


def _padding(block, rows, weight, bias, graphed):
    """A function that runs `block` on the smallest bucket that a batch fits into. Rows of padding
    are cut off.
    """
    sizes = {_bucket(rows, rows * percent // 100) for percent in _LENGTHS}
    static = {size: weight.new_zeros(size, len(weight)) for size in sizes}
    runs = {size: _captured(block, static[size], weight, bias) for size in sizes} if graphed else {}

    def run(data):
        size = _bucket(rows, len(data))
        static[size][: len(data)].copy_(data)
        if graphed:
            return runs[size]()[: len(data)].clone()  # the next batch of this bucket overwrites it
        return block(static[size], weight, bias)[: len(data)]

    return run


def _bucket(rows, length):
    """The smallest bucket that so many rows fit into."""
    return next(size for percent in _BUCKETS if (size := rows * percent // 100) >= length)


def _captured(block, static, weight, bias):
    """A function that replays `block` on the static batch, and returns its static result."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        block(static, weight, bias)  # compiles, which a capture does not allow
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = block(static, weight, bias)

    def replay():
        graph.replay()
        return result

    return replay


@contextmanager
def _reporting(lab):
    """Reports how much is compiled inside, and how long that takes with the first pass."""
    compiled = torch._dynamo.utils.counters["stats"]
    # loads the compiler itself
    torch.compile(lambda data: data + 1)(torch.ones(2, device=lab.device))
    before, started = compiled["unique_graphs"], perf_counter()
    yield
    lab.report("compilations", compiled["unique_graphs"] - before)
    lab.report("seconds of the first pass", round(perf_counter() - started, 2))
