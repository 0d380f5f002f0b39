"""Precision: fewer bits for each number, more matmuls in the same time.

**In short:** half the bits are half the bytes, and tensor cores do several times the arithmetic with them.

```text
      the bits of a number                 bytes
fp32  s eeeeeeee mmmmmmmmmmmmmmmmmmmmmmm   ████
tf32  s eeeeeeee mmmmmmmmmm                ████  as fp32
fp16  s eeeee mmmmmmmmmm                   ██
bf16  s eeeeeeee mmmmmmm                   ██
fp8   s eeee mmm                           █
int8  iiiiiiii                             █
      s sign    e exponent: range    m mantissa: digits
```

| variant | what changes | expected (H200, sustained) | why |
|---|---|---|---|
| `fp32` | both matrices and all arithmetic in 32 bits | baseline, 23.1 ms | no tensor cores |
| `tf32` | fp32 in memory, 10-bit mantissas inside | 6.8x | one setting, and much of the gain |
| `fp16` | 16 bits, a longer mantissa | 12.6x | half the bytes, twice the rate of TF32 |
| `bf16` | 16 bits, the range of fp32 | 13.1x | as fp16 |
| `fp8` | 8 bits, a scale for each matrix | 24.0x | a quarter of the bytes, twice the rate again |
| `int8` | 8-bit whole numbers, a scale for each matrix | not on a GPU | a recent CPU has instructions for it |

## What is compared

Every variant multiplies the same two matrices (a matmul), and is checked against the fp32 result,
within what its type can hold. The scales of fp8 and int8 are made beforehand, so only the matmul is
timed. A model needs more care than that, and pays for the conversions too.

## Why the sustained speedup heads the result

Each variant runs by itself for seconds, as training and inference do. A GPU lowers its clock at its
power limit, which dense arithmetic on tensor cores reaches; between slower variants it recovers. An
H100 of 700 W (our own measurement):

    interleaved: tf32 7.8x, bf16 15.1x, fp8 27.5x
    sustained:   tf32 6.9x, bf16 13.3x, fp8 24.0x

## What the source says

The Triton guide promises 10-100x of tensor cores. Datasheets say what to expect: an H100's peak is
30 times that of fp32 in fp8 and 15 times in bf16, a B200's 50 to 60 times in fp8. The gain is a
little more where fp32 stays further below its peak. On GeForce cards bf16 gains about 2x and TF32
hardly anything.

## Where nothing is gained

Where a matmul is small or memory bandwidth is the limit. Where instructions are missing, a CPU
multiplies bf16 and fp16 up to a hundred times slower than fp32: gpulab skips those variants there.
"""

from contextlib import contextmanager

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="compute",
    roof="matrix",
    params={"n": 8192},
    cpu={"n": 256},
    smoke={"n": 64},
    sweep={"n": (256, 512, 1024, 2048)},
    item="multiply-add",
    claim="Triton guide: tensor cores 10-100x",
    terms=("tensor cores", "tf32", "bf16", "fp16", "fp8", "int8", "quantization"),
)


@scenario.variant
def fp32(lab, n):
    """Both matrices, and all arithmetic, in 32 bits."""
    return _product(lab, n, torch.float32, "fp32")


@scenario.variant(needs=("cuda",))
def tf32(lab, n):
    """fp32 in memory, 10-bit mantissas in the tensor core."""
    return _product(lab, n, torch.float32, "tf32", context=_tf32)


@scenario.variant(needs=("cuda",))
def fp16(lab, n):
    """Half precision: 10 bits of mantissa, 5 of exponent."""
    return _product(lab, n, torch.float16, "fp16")


@scenario.variant
def bf16(lab, n):
    """Half the bits of fp32 with all of its range: 7 bits of mantissa."""
    if lab.device.type == "cpu" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        lab.skip(
            "this CPU has no instructions for bf16, and would take a hundred times as long as in "
            "fp32"
        )
    return _product(lab, n, torch.bfloat16, "bf16")


@scenario.variant(needs=("cuda",))
def fp8(lab, n):
    """8 bits (e4m3) with one scale a matrix; the result is in bf16."""
    if torch.cuda.get_device_capability(lab.device) < (8, 9):
        lab.skip("fp8 needs compute capability 8.9 or more")
    a, b = _matrices(lab, n)
    of_a, of_b = (matrix.abs().amax() / torch.finfo(torch.float8_e4m3fn).max for matrix in (a, b))
    left = (a / of_a).to(torch.float8_e4m3fn)
    # the layout that the hardware wants
    right = (b / of_b).t().contiguous().to(torch.float8_e4m3fn).t()
    return Work(
        lambda: torch._scaled_mm(left, right, scale_a=of_a, scale_b=of_b, out_dtype=torch.bfloat16),
        items=n**3,
        flops=2 * n**3,
        bytes=2 * n**2 + 2 * n**2,
        dtype="fp8",
        inputs=(left, right, of_a, of_b),
    )


@scenario.variant
def int8(lab, n):
    """8-bit integers with one scale a matrix, summed in 32 bits."""
    if lab.device.type == "cuda":
        lab.skip("on a GPU this lesson takes fp8 for eight bits")
    a, b = _matrices(lab, n)
    scales = torch.stack((a.abs().amax(), b.abs().amax())) / 127
    left, right = (
        torch.round(matrix / scale).to(torch.int8)
        for matrix, scale in zip((a, b), scales, strict=True)
    )
    scale = scales.prod()
    product = torch.empty(n, n, dtype=torch.int32)
    out = torch.empty(n, n)

    def step():
        torch._int_mm(left, right, out=product)
        torch.mul(product, scale, out=out)

    return Work(
        step,
        items=n**3,
        flops=2 * n**3,
        bytes=2 * n**2 + 4 * n**2,
        dtype="int8",
        inputs=(left, right, scale),
        output=out,
        tolerance=5e-2,
    )


def _product(lab, n, dtype, name, context=None):
    a, b = (matrix.to(dtype) for matrix in _matrices(lab, n))
    out = torch.empty(n, n, dtype=dtype, device=lab.device)
    return Work(
        lambda: torch.mm(a, b, out=out),
        items=n**3,
        flops=2 * n**3,
        bytes=a.nbytes + b.nbytes + out.nbytes,
        dtype=name,
        inputs=(a, b),
        output=out,
        context=context,
    )


def _matrices(lab, n):
    return torch.randn(n, n, device=lab.device), torch.randn(n, n, device=lab.device)


@contextmanager
def _tf32():
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
