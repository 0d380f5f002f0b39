"""The roofline, point by point: what limits an operation is how much it computes for each byte that it moves.

Every operation has an arithmetic intensity, its FLOPs over the bytes it must at least move. On the left of the
ridge memory is the roof: a vector addition does one FLOP for twelve bytes, and no amount of arithmetic hardware
makes it faster. On the right arithmetic is: a large product reuses every number it loads. Find each letter on the
plot, see which roof is above it, and how far below that it stays.

What counts as a FLOP is a convention, so it is stated here. Addition: 1 an element, over 12 bytes in fp32 (two
loads, one store). axpy, y = a x + y: 2, over 12. Softmax: 5 (maximum, subtraction, exponential, sum, division) over
8 (a load, a store). LayerNorm: 7 (sum, subtraction, square, sum, and three for scaling and shifting) over 8. Product
of n x n: 2 n^3 over 12 n^2, so n/6. Attention: 4 L^2 D for the two products and 5 L^2 for the softmax of each head,
over 16 L D: the scores need never leave the chip.

These are not variants of one another, so nothing is compared: a far point is not a bad one. It is a question.
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
    cpu={"mib": 128, "rows_mib": 24, "small": 64, "large": 1024, "batch": 1, "heads": 4, "length": 1024},
    smoke={"mib": 1, "rows_mib": 1, "small": 16, "large": 64, "batch": 1, "heads": 1, "length": 64},
    claim="low intensity is memory-bound, high intensity compute-bound",
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
    return Work(lambda: torch.softmax(data, 1, out=out), flops=5 * count, bytes=8 * count, inputs=data)


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
    """A product too small to fill the device."""
    return _product(lab, small)


@scenario.variant(against=None)
def large_matmul(lab, large):
    """A product that reuses every number hundreds of times: n/6 FLOPs for a byte."""
    return _product(lab, large)


@scenario.variant(against=None)
def attention(lab, batch, heads, length, width):
    """Scaled dot-product attention, in one operation."""
    q, k, v = (torch.randn(batch, heads, length, width, device=lab.device) for _ in range(3))
    return Work(
        lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v),
        flops=batch * heads * length**2 * (4 * width + 5),
        bytes=4 * q.nbytes,
        inputs=(q, k, v),
    )


def _product(lab, n):
    a, b, out = (torch.randn(n, n, device=lab.device) for _ in range(3))
    return Work(lambda: torch.mm(a, b, out=out), flops=2 * n**3, bytes=12 * n**2, inputs=(a, b))
