"""The roofline, point by point: what limits an operation is its FLOPs per byte.

**In short:** with few FLOPs per byte memory is the limit, with many arithmetic is, and the ridge lies between.

```text
 780T │                                    /──────────H──── bf16 peak
      │                               /           I
  50T │                          /─────────────────F─────── fp32 peak
      │                     /
   8T │                /            E  G
      │           C D
 0.8T │      B
      │ /A
FLOP/s└───┴─────────┴─────────┴─────────┴─────────┴────────▶
          0.1       1         10        100       1000 FLOP/byte
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `vector_add` | A: 1 FLOP / 12 bytes | 105 % of memory | two loads and a store for one addition |
| `axpy` | B: 2 / 12 an element | 105 % of memory | twice the FLOPs in the same time |
| `softmax` | C: 5 / 8 an element | 99 % of memory | maximum, subtraction, exponential, sum, division |
| `layernorm` | D: 7 / 8 an element | 66 % of memory | sum, subtraction, square, sum, scaling, shifting |
| `small_matmul` | E: n/6 = 43, n = 256 | 7 % of fp32 | too small to fill the device |
| `large_matmul` | F: n/6 = 1365, n = 8192 | 88 % of fp32 | it reuses every number it loads |
| `small_matmul_bf16` | G: n/3 = 85 | 1.3 % of memory | still too small |
| `large_matmul_bf16` | H: n/3 = 2731 | 100 % of bf16 | tensor cores |
| `attention` | I: (4 D + 5) L^2 / 8 L D a head, bf16 | 60 % of bf16 | two matmuls and a softmax; the scores stay on the chip |

## How to read the plot

The arithmetic intensity of an operation is its FLOPs (floating-point operations) divided by the
bytes that it must at least move. It grows to the right, FLOP/s grow upwards. The sloped line is the
memory bandwidth, each flat line is a peak of arithmetic. They meet at the *ridge*:

    ridge = peak in FLOP/s / memory bandwidth in bytes/s

Left of it memory is the limit (the *roof*), and no arithmetic hardware makes a vector addition
faster. Right of it arithmetic is the limit, as of a large matrix product (matmul).

## Each kind of arithmetic has its ridge

From the same memory, an H100's tensor cores compute bf16 some fifteen times as fast as other cores
compute fp32. So its ridges are at 17 and about 260 FLOP/byte. The small matmul is right of the fp32
ridge, and in bf16 left of the bf16 ridge; the large one is right of both.

Attention is in bf16, as neither the fp32 nor the tf32 roof is that of the fused fp32 kernel: it
computes each matmul as several in tf32.

## What a point does not say

What counts as a FLOP is a convention: the table states ours. The points are no variants of one
another, so nothing is compared. A point far below its roof is not an error: ask what else limits it
(launches, latency, too little work).
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="compute",
    clock="device",
    params={
        "mib": 512,
        "rows_mib": 512,
        "small": 256,
        "large": 8192,
        "batch": 8,
        "heads": 16,
        "length": 2048,
        "width": 64,
    },
    cpu={
        "mib": 32,
        "rows_mib": 16,
        "small": 64,
        "large": 512,
        "batch": 1,
        "heads": 4,
        "length": 512,
    },
    smoke={"mib": 1, "rows_mib": 1, "small": 16, "large": 64, "batch": 1, "heads": 1, "length": 64},
    claim="performance basics: low intensity is memory-bound, high intensity compute-bound",
    terms=("hbm", "ncu", "nsight compute", "memory-bound", "compute-bound", "bandwidth"),
)
COLUMNS = 1024


@scenario.variant
def vector_add(lab, mib):
    """c = a + b: 1 FLOP for 12 bytes."""
    a, b, out = (torch.rand(mib * MiB // 4, device=lab.device) for _ in range(3))
    count = out.numel()
    return Work(lambda: torch.add(a, b, out=out), flops=count, bytes=12 * count, inputs=(a, b))


@scenario.variant(against=None)
def axpy(lab, mib):
    """y = a x + y: 2 FLOPs for 12 bytes."""
    x, y = (torch.rand(mib * MiB // 4, device=lab.device) for _ in range(2))
    count = y.numel()
    return Work(lambda: y.add_(x, alpha=1e-3), flops=2 * count, bytes=12 * count, inputs=x, state=y)


@scenario.variant(against=None)
def softmax(lab, rows_mib):
    """Rows of 1024: 5 FLOPs for 8 bytes."""
    data = torch.randn(rows_mib * MiB // 4 // COLUMNS, COLUMNS, device=lab.device)
    out, count = torch.empty_like(data), data.numel()
    return Work(
        lambda: torch.softmax(data, 1, out=out), flops=5 * count, bytes=8 * count, inputs=data
    )


@scenario.variant(against=None)
def layernorm(lab, rows_mib):
    """Rows of 1024: 7 FLOPs for 8 bytes."""
    data = torch.randn(rows_mib * MiB // 4 // COLUMNS, COLUMNS, device=lab.device)
    weight, bias = (torch.randn(COLUMNS, device=lab.device) for _ in range(2))
    count = data.numel()
    return Work(
        lambda: torch.nn.functional.layer_norm(data, (COLUMNS,), weight, bias),
        flops=7 * count,
        bytes=8 * count,
        inputs=(data, weight, bias),
    )


@scenario.variant(against=None)
def small_matmul(lab, small):
    """A matmul too small to fill the device."""
    return _product(lab, small)


@scenario.variant(against=None)
def large_matmul(lab, large):
    """A matmul that reuses every number hundreds of times: n/6 FLOPs for a byte."""
    return _product(lab, large)


@scenario.variant(against=None)
def small_matmul_bf16(lab, small):
    """The small matmul in bf16: twice the FLOPs for a byte, and still too small for the device."""
    return _product(lab, small, torch.bfloat16, "bf16")


@scenario.variant(against=None)
def large_matmul_bf16(lab, large):
    """The large matmul in bf16: n/3 FLOPs for a byte, under the roof of the tensor cores."""
    return _product(lab, large, torch.bfloat16, "bf16")


@scenario.variant(against=None)
def attention(lab, batch, heads, length, width):
    """Scaled dot-product attention in bf16, in one operation."""
    shape = (batch, heads, length, width)
    q, k, v = (torch.randn(shape, dtype=torch.bfloat16, device=lab.device) for _ in range(3))
    return Work(
        lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v),
        flops=batch * heads * length**2 * (4 * width + 5),
        bytes=4 * q.nbytes,
        dtype="bf16",
        inputs=(q, k, v),
    )


def _product(lab, n, dtype=torch.float32, name="fp32"):
    if (
        name == "bf16"
        and lab.device.type == "cpu"
        and not torch.ops.mkldnn._is_mkldnn_bf16_supported()
    ):
        lab.skip(
            "this CPU has no instructions for bf16, and would take a hundred times as long as in "
            "fp32"
        )
    a, b, out = (torch.randn(n, n, dtype=dtype, device=lab.device) for _ in range(3))
    return Work(
        lambda: torch.mm(a, b, out=out),
        flops=2 * n**3,
        bytes=3 * a.nbytes,
        dtype=name,
        inputs=(a, b),
    )
