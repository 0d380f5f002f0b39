"""Batch size: larger batches cost less per row, until arithmetic is the limit.

Every variant takes the same 2,048 rows through a two-layer perceptron, in batches of its size. The
weights are read once for each batch, whatever the number of rows: with 32 rows 64 times, with 2,048
rows once. A small batch therefore waits for the weights, and each row costs half as much when the
batch doubles, until the arithmetic takes longer than reading the weights. In fp16 a weight is 2
bytes and costs 2 FLOPs per row, so a batch of n rows does n FLOPs per byte of weights. Both times
are equal where n is the ridge point, the device's FLOP/s over its bytes/s: 150 to 300 rows on
tensor cores of a data-center GPU. From there on the curve flattens: an H200 gained 1.9x at 64 rows,
3.5x at 128, 5.2x at 256, and no more than 6.3x at 2,048. Since reading the weights is all that a
small batch costs, about the ridge over 32 is the most to gain over 32 rows, some 5 to 9x. Launches
add to the cost of small batches in the same way.

This needs weights that come from memory, and a large L2 cache holds small ones: on a GPU `hidden`
grows until they are four times the L2 (`--set caches=0` takes `hidden` as it is). The matrix
products (matmuls) are in fp16 there. In fp32, without tensor cores, a weight is 4 bytes and its
arithmetic takes 15 times as long on an H100, so that its ridge is at some 34 rows. It still gained
3.9x from 32 to 2,048 rows, with weights that its L2 held: its small batches paid for launches and
for kernels too small to fill the device.

The best size is the smallest batch that is nearly as fast per row as the fastest. A larger one
gains no throughput and costs latency and memory. The first batch that does not fit is reported as
out of memory, which is not a failure (try `--set width=16 --set hidden=1000000` on a CPU with
little memory, `hidden=20000000` on a GPU: 2 x 82 GB). The performance basics and the quick-start
guide report less than 1 TFLOP/s, so their devices were mostly idle: compare the share of the roof.

In training a larger batch is not free even below that size: there are fewer steps per epoch, and
the learning rate has to be tuned again. On a CPU 32 rows keep one core's arithmetic busy. The
layers are narrow there, so that larger batches share the cost of calls (1.8-2.0x at 512 rows,
measured here); 2,048 rows are slower again, too many for its nearer cache.
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
    terms=("throughput", "batching"),
)
_ROWS = 2048


@scenario.variant
def batch_32(lab, width, hidden, caches):
    """32 rows a batch, 64 batches."""
    return _perceptron(lab, width, hidden, caches, 32)


@scenario.variant
def batch_64(lab, width, hidden, caches):
    """64 rows a batch."""
    return _perceptron(lab, width, hidden, caches, 64)


@scenario.variant
def batch_128(lab, width, hidden, caches):
    """128 rows a batch."""
    return _perceptron(lab, width, hidden, caches, 128)


@scenario.variant
def batch_256(lab, width, hidden, caches):
    """256 rows a batch."""
    return _perceptron(lab, width, hidden, caches, 256)


@scenario.variant
def batch_512(lab, width, hidden, caches):
    """512 rows a batch."""
    return _perceptron(lab, width, hidden, caches, 512)


@scenario.variant
def batch_1024(lab, width, hidden, caches):
    """1,024 rows a batch."""
    return _perceptron(lab, width, hidden, caches, 1024)


@scenario.variant
def batch_2048(lab, width, hidden, caches):
    """All 2,048 rows in one batch."""
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
