"""Tensor core shapes: rows that begin at multiples of 16 bytes, and one stride of 1.

**In short:** a product in bf16 wants sizes that are multiples of 8, so that every row begins at a multiple of 16 bytes.

```text
rows in memory   │ every 16 bytes, 8 numbers   █ row 0  ▒ row 1

aligned          ... █│████████│▒▒▒▒▒▒▒▒│▒   512 pieces a row
eight_less       ... █│████████│▒▒▒▒▒▒▒▒│▒   511
eight_more       ... █│████████│▒▒▒▒▒▒▒▒│▒   513
one_less         ... █│███████▒│▒▒▒▒▒▒▒▒│▒   511 and 7 numbers
transposed       ... the same, but of columns
not_contiguous   ... ·│█·█·█·█·│▒·▒·▒·▒·│▒   every second number
```

| variant | what changes | expected (H200) for each FLOP | why |
|---|---|---|---|
| `aligned` | n = 4096, a multiple of 16 | baseline, 99 % of the roof | the fastest kernels may be used |
| `one_less` | 4095, an odd number | 0.19x | most rows begin inside of 16 bytes: other kernels, smaller loads |
| `eight_less` | 4088, a multiple of 8, not of 16 | 0.94x | rows begin at multiples of 16 bytes, and edge tiles are filled up |
| `eight_more` | 4104, a multiple of 8, not of 16 | 0.91x | aligned too; 8 more rows or columns may take another row or column of tiles |
| `transposed` | the left operand is stored by columns | 0.99x, inconclusive | cuBLAS reads it by columns: nothing is copied |
| `not_contiguous` | the left operand is every second column of a matrix | 0.80x | no stride is 1: PyTorch copies it first, in every step |

## What happens

A kernel computes tiles with instructions of a fixed shape, such as 16x8x16 (`mma`) or 64x256x16
(`wgmma`). It fills up a tile at the edge by itself, with zeros. So no size is refused, and an odd
one stays on the tensor cores.

What a kernel cannot repair is where rows begin. A thread loads up to 16 bytes at a time, from a
multiple of 16. The copy unit of Hopper (TMA) wants every row to begin at one:

    2 bytes * n = 16 bytes * a whole number, so n is a multiple of 8

For other rows the library has kernels with smaller loads.

## Which kernel ran

Its name is in the table of operations (`o`). On Hopper `nvjet` and `sm90` are kernels with `wgmma`;
`sm80` and `16816` use the older `mma`; `simt` or `ffma` use no tensor cores. `align1` or `align2`
counts the elements of a load. `not_contiguous` has a second kernel, the copy.

## Contiguous or not

One stride of 1 is enough, of rows or of columns. So `x.t()` is free, and so is `x[:, :4088]`, whose
rows still begin at multiples of 16 bytes.

## What the source says

The Triton guide wants multiples of 16, and contiguous operands. That is sufficient; 16 bytes, so 8
numbers in bf16 and 16 in fp8, are what is needed. So a vocabulary of 50257 is padded to 50304. Pad
once, where weights are made: a copy in every step can cost what it gains. `torch.compile` pads some
products by itself.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="compute",
    needs=("cuda",),
    roof="matrix",
    clock="device",
    params={"n": 4096},
    smoke={"n": 64},
    sweep={"n": (1024, 2048, 4096, 8192)},
    per="item",
    item="multiply-add",
    claim=(
        "Triton guide: sizes that are multiples of 16, and contiguous operands, for tensor cores; "
        "without a figure"
    ),
    no_effect_reason=(
        "cuBLAS fills up tiles at the edge, reads a transposed operand as it is, and has kernels "
        "for any alignment"
    ),
    terms=("alignment", "padding", "cublas", "wgmma", "vocabulary size", "tma"),
)


@scenario.variant
def aligned(lab, n):
    """n is a multiple of 16: every row begins at a multiple of 16 bytes."""
    return _product(lab, n, n)


@scenario.variant
def one_less(lab, n):
    """An odd size, n - 1 against n: most rows begin inside of 16 bytes."""
    return _product(lab, n, n - 1)


@scenario.variant
def eight_less(lab, n):
    """n - 8, a multiple of 8 and not of 16: rows begin at multiples of 16 bytes all the same."""
    return _product(lab, n, n - 8)


@scenario.variant
def eight_more(lab, n):
    """n + 8 against n: aligned as well, and perhaps with another row or column of tiles."""
    return _product(lab, n, n + 8)


@scenario.variant
def transposed(lab, n):
    """The left operand stored by columns, against by rows; the sizes are those of the baseline."""
    return _product(lab, n, n, lambda left: left.t().contiguous().t())


@scenario.variant
def not_contiguous(lab, n):
    """The left operand is every second column of a matrix: neither of its strides is 1."""
    return _product(lab, n, n, lambda left: torch.stack((left, left), dim=2)[:, :, 0])


def _product(lab, n, size, stored=lambda left: left):
    common = n - 8
    shared = torch.randn(2, common, common, device=lab.device) / common**0.5
    left, right = torch.randn(2, size, size, device=lab.device)
    left[:common, :common], right[:common, :common] = shared
    left[:, common:] = 0  # so that the first rows and columns of the result are those of all sizes
    left, right = stored(left.bfloat16()), right.bfloat16()
    out = torch.empty(size, size, device=lab.device, dtype=torch.bfloat16)
    return Work(
        lambda: torch.mm(left, right, out=out),
        items=size**3,
        flops=2 * size**3,
        bytes=3 * out.nbytes,
        dtype="bf16",
        inputs=(left, right),
        output=out[:common, :common],
    )
