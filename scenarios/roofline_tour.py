"""The roofline, point by point: what limits an operation is its FLOPs per byte.

The arithmetic intensity of an operation is its FLOPs (floating-point operations) divided by the
bytes that it must at least move. The plot has intensity to the right and FLOP/s upwards. The sloped
line is the memory bandwidth, each flat line is a peak of arithmetic, and they meet at the *ridge*.
Left of the ridge memory is the limit (the *roof*): a vector addition does one FLOP for twelve
bytes, and no amount of arithmetic hardware makes it faster. Right of the ridge arithmetic is the
limit: a large matrix product (matmul) reuses every number it loads.

Each kind of arithmetic has its ridge. From the same memory, an H100's tensor cores compute bf16
some fifteen times as fast as other cores compute fp32, so the ridges are at 17 and about 260
FLOP/byte. The small matmul (n = 256) has 43 FLOP/byte, right of the fp32 ridge. In bf16 it has 85,
left of the bf16 ridge. The large matmul is right of its ridge in both types.

What counts as a FLOP is a convention, so it is stated here. Addition: 1 an element, over 12 bytes
in fp32 (two loads, one store). axpy, y = a x + y: 2, over 12. Softmax: 5 (maximum, subtraction,
exponential, sum, division) over 8 (a load, a store). LayerNorm: 7 (sum, subtraction, square, sum,
and three for scaling and shifting) over 8. Matmul of n x n: 2 n^3 over 12 n^2, so n/6; in bf16 over
6 n^2, so n/3. Attention in bf16: 4 L^2 D for the two matmuls and 5 L^2 for the softmax of each
head, over 8 L D: the scores need never leave the chip.

Attention is in bf16, as neither the fp32 nor the tf32 roof is that of the fused fp32 kernel: it
computes each matmul as several in tf32.

These are not variants of one another, so nothing is compared. A point far below its roof is not an
error: ask what else limits it (launches, latency, too little work).
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
        "mib": 64,
        "rows_mib": 24,
        "small": 64,
        "large": 768,
        "batch": 1,
        "heads": 4,
        "length": 1024,
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
