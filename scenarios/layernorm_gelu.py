"""Layer norm and GELU: an activation costs a pass over memory, or nothing if it is fused.

A layer norm scales each row to mean 0 and variance 1, then by a weight and a bias for each column;
GELU, x times the normal distribution's share below x, goes through each element. As two operations
of PyTorch they are two kernels, both good: each has to read the tensor once and to write it once.
So four passes over memory, of which the two in the middle, a result written and read again at once,
are of no use to anyone. Fused they are two, half the bytes: 2x by traffic, which no better layer
norm or GELU by itself could gain (bottleneck 3 of the bottleneck guide).

`compiled` leaves the fusion to torch.compile, which writes both as one kernel that goes through a
row in loops. `in_triton` is one kernel by hand: a program has one row in registers, computes mean
and variance of it there, normalizes, applies GELU, and stores. On an H200 they gain 1.8x and 2.15x
(measured here): more than 2x, as torch's layer norm goes through each row twice, and of the second
time two fifths come from memory once more (ncu counts 1.41 reads): 4.4 passes in place of four. A
variance as the mean of the squared differences needs the mean first; that would be another pass
over memory, but over registers it is free, and more accurate than E[x^2] - E[x]^2.

Norm and GELU, with its error function, are about 30 FLOPs an element (as `in_triton` is compiled),
for 8 bytes. An H200 has some 15 FLOPs of fp32 for each byte, so 120 for these 8: most of them hide
behind the memory. Fusion adds up the FLOPs of its parts over fewer bytes, which moves the point to
the right on the plot, with the same function computed. With bf16 it would be half the bytes for the
same FLOPs, and GELU's tanh approximation begins to be worth a thought.

The intermediate result is not allocated either: peak memory is lower by one tensor. In training it
is needed again in the backward pass, unless that computes it anew from x and the row's mean and
deviation, which is what a fused training kernel keeps (see `recomputation`). A layer norm behind a
matmul cannot be fused into it as easily: it needs whole rows, and a tile of a matmul has only a
part of each (see `matmul_epilogue`).

Rows of up to 16384 floats fit into the registers of a program with 1024 threads, and 32768 nearly
so. Of longer ones a part is spilled, to memory: `in_triton` is still right, but slow, and should go
through a row in pieces, as `fused_softmax` does.

On a CPU memory is not the limit: one thread reaches a quarter of its roof in `eager` and computes
most of the time. There `compiled` was 0.95x to 1.2x, on one thread or two (our own measurement):
half the bytes, but not half the time.
"""

from functools import partial

import torch
from torch.nn import functional

from gpulab import MiB, Scenario, Work

try:
    import triton
    import triton.language as tl
except ImportError:  # the variant says that it needs it
    triton = None

scenario = Scenario(
    topic="Triton, compilers, attention",
    roof="device memory",
    clock="device",
    params={"mib": 512, "columns": 4096},
    cpu={"mib": 16, "columns": 1024},
    smoke={"mib": 1, "columns": 1000},
    sweep={"columns": (256, 1024, 4096, 16384)},
    ladder=True,
    item="element",
    claim="bottleneck guide: bottleneck 3, without a figure; our own: 2x by traffic",
    terms=("fusion", "normalization", "activation"),
)
_EPSILON = 1e-5
_TILE, _PER_WARP = 4096, 512  # elements: of a block, of a warp


@scenario.variant
def eager(lab, mib, columns):
    """Two operations: layer norm, then GELU."""
    return _work(lab, mib, columns, _norm_then_gelu, passes=4)


@scenario.variant(needs=("compiler",))
def compiled(lab, mib, columns):
    """The same two through torch.compile, which makes one kernel of them."""
    return _work(lab, mib, columns, torch.compile(_norm_then_gelu), passes=2)


@scenario.variant(needs=("cuda", "triton"))
def in_triton(lab, mib, columns):
    """One Triton kernel, written by hand."""
    return _work(lab, mib, columns, _by_triton, passes=2)


def _norm_then_gelu(rows, weight, bias):
    return functional.gelu(functional.layer_norm(rows, weight.shape, weight, bias, _EPSILON))


def _by_triton(rows, weight, bias):
    out, (count, columns) = torch.empty_like(rows), rows.shape
    block = triton.next_power_of_2(columns)
    high = max(1, _TILE // block)
    warps = min(32, high * block // _PER_WARP)
    _fused[(triton.cdiv(count, high),)](
        rows, weight, bias, out, count, columns, _EPSILON, HIGH=high, BLOCK=block, num_warps=warps
    )
    return out


if triton is not None:

    @triton.jit
    def _fused(
        rows, weight, bias, out, count, columns, epsilon, HIGH: tl.constexpr, BLOCK: tl.constexpr
    ):
        """One program has HIGH whole rows in registers, from the load to the store."""
        row = tl.program_id(0).to(tl.int64) * HIGH + tl.arange(0, HIGH)[:, None]
        column = tl.arange(0, BLOCK)[None, :]
        real = column < columns
        place, inside = row * columns + column, (row < count) & real
        value = tl.load(rows + place, mask=inside, other=0.0)
        value -= (tl.sum(value, axis=1) / columns)[:, None]
        value = tl.where(real, value, 0.0)  # or the padding would count in the variance
        value *= tl.rsqrt(tl.sum(value * value, axis=1) / columns + epsilon)[:, None]
        value = value * tl.load(weight + column, mask=real) + tl.load(bias + column, mask=real)
        value *= 0.5 + 0.5 * tl.erf(value * 0.7071067811865476)
        tl.store(out + place, value, mask=inside)


def _work(lab, mib, columns, function, passes):
    high = max(1, mib * MiB // 4 // columns)
    rows = torch.randn(high, columns, device=lab.device)
    rows *= 1 + torch.rand(high, 1, device=lab.device)  # no two rows have the same mean and spread
    rows += torch.randn(high, 1, device=lab.device)
    weight, bias = (torch.randn(columns, device=lab.device) / 10 for _ in range(2))
    weight += 1
    tensors = (rows, weight, bias)

    count = rows.numel()
    step = partial(function, *tensors)
    return Work(
        step,
        bytes=passes * rows.nbytes,
        flops=30 * count,
        dtype="fp32",
        items=count,
        inputs=tensors,
    )
