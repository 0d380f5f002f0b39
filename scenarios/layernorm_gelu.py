"""Layer norm and GELU: an activation costs a pass over memory, or nothing if it is fused.

**In short:** two good kernels still write a result and read it again at once; one fused kernel leaves those two passes out.

```text
       reads     kernel             writes    bytes an element
eager  x ──────▶ layer norm ──────▶ n         4 + 4
       n ──────▶ GELU       ──────▶ y         4 + 4    16 in all

fused  x ──────▶ layer norm, then
                 GELU, the row
                 on the chip ─────▶ y         4 + 4     8 in all
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `eager` | two operations, two kernels | baseline, 603 us, 85 % of the roof | four passes over memory; torch's layer norm reads rows twice: 4.4 |
| `compiled` | `torch.compile` writes one kernel | 1.8x; 0.95x to 1.2x on a CPU | two passes: one kernel goes through a row in loops |
| `in_triton` | one kernel by hand | 2.15x, 92 % of the roof | a program keeps one row in registers and reads it once |

## What is saved

A layer norm scales each row to mean 0 and variance 1, then by a weight and a bias for each column.
GELU multiplies each x by the normal distribution's share below x. The first kernel writes n, and
the second reads it at once. No better layer norm or GELU by itself could save these two passes:

    (2 + 2) passes / (1 + 1) passes = 2x

It can be more. torch's layer norm reads a row twice, and two fifths of the second read come from
memory (ncu: 1.41 reads). A variance from squared differences needs the mean first. Over registers
that second pass is free, and it is more accurate than E[x^2] - E[x]^2. The result between the two
is not allocated either, so the peak memory is lower by one tensor.

## Why the arithmetic is nearly free

    needed: about 30 FLOPs an element for 8 bytes
    H200:   about 15 FLOPs a byte, 120 for 8 bytes

Most of it hides behind the memory. The same FLOPs over fewer bytes move the point to the right on
the plot. With the half bytes of bf16, GELU's tanh approximation begins to be worth a thought.

## Where it does not help

- On a CPU: one thread is at a quarter of its roof in `eager`, and computes most of the time. Half
  the bytes are not half the time.
- In training: the backward pass needs the result between the two. A fused training kernel computes
  it again, from x, mean and deviation (see `recomputation`).
- Behind a matmul: a tile has only a part of each row, a norm needs it whole (see
  `matmul_epilogue`).
- Rows beyond 16384 floats: at 32768 registers nearly suffice, and longer ones spill. `in_triton` is
  then right, but slow, and should go in pieces, as `fused_softmax` does.

The bottleneck guide has this as bottleneck 3, without a figure.
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
    terms=("fusion", "normalization", "activation function", "kernel fusion", "triton"),
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
    """One Triton kernel by hand, which has a row in registers from the load to the store."""
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
