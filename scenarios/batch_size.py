"""Batch size: larger batches cost less per row, until arithmetic is the limit.

**In short:** a batch reads all weights once, so more rows share that cost, until their arithmetic takes longer than the reading.

```text
time of one batch: the longer of its two bars    (H200, ridge 160)

batch_32   weights    ████████████████
           arithmetic ▒▒▒
batch_64   weights    ████████████████           twice the rows,
           arithmetic ▒▒▒▒▒▒                     the same time
batch_128  weights    ████████████████
           arithmetic ▒▒▒▒▒▒▒▒▒▒▒▒▒
batch_256  weights    ████████████████           from here on time
           arithmetic ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒ grows with the rows
```

| variant | what changes | expected (H200, fp16, per row) | why |
|---|---|---|---|
| `batch_32` | 64 batches of 32 rows | baseline, 2.33 us a row | weights are read 64 times: 80 % of the memory's roof |
| `batch_64` | 32 batches | 1.9x | half the reads; memory is still the limit |
| `batch_128` | 16 batches | 3.5x | the same, just below the ridge |
| `batch_256` | 8 batches | 5.4x | above the ridge: the limit is arithmetic |
| `batch_512` | 4 batches | 5.9x | 90 % of the roof of the tensor cores |
| `batch_1024` | 2 batches | 6.1x | little is left |
| `batch_2048` | all rows in one batch | 6.4x; 5.8x sustained (timed alone) | weights are read once; at the roof |
| `too_many` | activations larger than the memory of the GPU | out of memory | a larger batch needs more memory; no failure |

## Where the curve flattens

Every variant takes the same 2,048 rows through a two-layer perceptron. In fp16 a weight is 2 bytes,
and costs 2 FLOPs for each row. So a batch of n rows does n FLOPs per byte of weights. Reading and
arithmetic take equally long at the ridge point:

    n = FLOP/s of the device / bytes/s of its memory

That is 150 to 300 rows on tensor cores of a data-center GPU. So the most to gain over 32 rows is
about ridge / 32, some 5 to 9x. A baseline below its roof leaves more:
160 / 32 / 0.8 = 6.25x in the table. Launches add to the cost of small batches in the same way.

## Which size to choose

Take the smallest batch that is nearly as fast per row as the fastest. A larger one only costs
latency and memory. The first that does not fit is reported as out of memory, which is no failure.
Try `--set width=16 --set hidden=20000000` on a GPU (2 x 82 GB), `hidden=1000000` on a CPU with
little memory. In training a larger batch also means fewer steps per epoch, and another learning
rate.

## Where it helps less

- Weights in a cache are not read from memory. So on a GPU `hidden` grows until they are four times
  the L2 (`--set caches=0` leaves it as set).
- In fp32, without tensor cores, an H100's ridge is at some 34 rows. It still gained 3.9x from 32 to
  2,048 rows, with weights in its L2: small batches paid for launches, and did not fill the device.
- On a CPU 32 rows keep a core busy. Layers are narrow there, and batches share the cost of calls:
  1.8-2.0x at 512 rows (our CPU). 2,048 rows are too many for its nearer cache, and slower.

## What the sources say

The performance basics and the quick-start guide report less than 0.1 TFLOP/s, and contradict each
other. Their devices were mostly idle: compare the share of the roof.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="compute",
    roof="matrix",
    params={"width": 2048, "hidden": 8192, "caches": 4},
    cpu={"width": 32, "hidden": 128, "caches": 0},
    smoke={"width": 32, "hidden": 64, "caches": 0},
    per="item",
    item="row",
    ladder=True,
    increasing_memory=True,
    claim=(
        "performance basics: 10x+ (87 to 1000+ MFLOP/s); quick-start guide: 8.5x at 256 (11K to "
        "95K MFLOP/s): the two contradict each other"
    ),
    terms=("throughput", "ridge point", "weights", "out of memory"),
)
_ROWS = 2048


@scenario.variant
def batch_32(lab, width, hidden, caches):
    """32 rows a batch: the weights are read 64 times."""
    return _perceptron(lab, width, hidden, caches, 32)


@scenario.variant
def batch_64(lab, width, hidden, caches):
    """64 rows a batch: half as many reads of the weights as with 32."""
    return _perceptron(lab, width, hidden, caches, 64)


@scenario.variant
def batch_128(lab, width, hidden, caches):
    """128 rows a batch: half as many reads as with 64."""
    return _perceptron(lab, width, hidden, caches, 128)


@scenario.variant
def batch_256(lab, width, hidden, caches):
    """256 rows a batch: half as many reads again; on an H200 arithmetic is now the limit."""
    return _perceptron(lab, width, hidden, caches, 256)


@scenario.variant
def batch_512(lab, width, hidden, caches):
    """512 rows a batch: twice as many as before, the same arithmetic per row."""
    return _perceptron(lab, width, hidden, caches, 512)


@scenario.variant
def batch_1024(lab, width, hidden, caches):
    """1,024 rows a batch: the weights are read twice."""
    return _perceptron(lab, width, hidden, caches, 1024)


@scenario.variant
def batch_2048(lab, width, hidden, caches):
    """All 2,048 rows in one batch: the weights are read once."""
    return _perceptron(lab, width, hidden, caches, 2048)


@scenario.variant(needs=("cuda",))
def too_many(lab, width, hidden, caches):
    """A batch whose activations alone are larger than the memory of the GPU: it ends before its
    first step, out of memory.
    """
    per_row = hidden * torch.float16.itemsize  # at least: `hidden` may grow
    batch = _ROWS * (1 + lab.memory_bytes // (_ROWS * per_row))
    return _perceptron(lab, width, hidden, caches, batch, count=batch)


def _perceptron(lab, width, hidden, caches, batch, count=_ROWS):
    """A step takes `count` rows, a multiple of 2,048, of which the first are compared."""
    dtype = torch.float16 if lab.device.type == "cuda" else torch.float32
    # hidden units whose weights are so many caches
    fewest = caches * lab.l2_bytes // (2 * width * dtype.itemsize)
    hidden = max(hidden, -(-fewest // 1024) * 1024)
    # first of all, so that a batch that does not fit has taken nothing yet
    between, active = (torch.empty(batch, hidden, device=lab.device, dtype=dtype) for _ in range(2))
    rows = torch.randn(_ROWS, width, device=lab.device).to(dtype).repeat(count // _ROWS, 1)
    up = (torch.randn(width, hidden, device=lab.device) / width**0.5).to(dtype)
    down = (torch.randn(hidden, width, device=lab.device) / hidden**0.5).to(dtype)
    out = torch.empty_like(rows)
    batches = list(zip(rows.split(batch), out.split(batch), strict=True))

    def step():
        for some, result in batches:
            torch.mm(some, up, out=between)
            torch.clamp_min(between, 0, out=active)  # ReLU
            torch.mm(active, down, out=result)

    weights = up.nbytes + down.nbytes
    activations = 2 * (between.nbytes + active.nbytes)  # each is written and read
    return Work(
        step,
        flops=4 * count * width * hidden,
        bytes=rows.nbytes + out.nbytes + len(batches) * (weights + activations),
        dtype="fp16" if dtype == torch.float16 else "fp32",
        items=count,
        inputs=(rows, up, down),
        output=out[:_ROWS],
    )
