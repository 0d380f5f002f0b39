"""Attention: the scores are a matrix of length x length that need never reach memory.

**In short:** flash attention computes the scores block by block on the chip, so memory grows with the length, not with its square.

```text
naive                           flash
        all L keys              a block of queries stays on the chip
       ┌──────────────┐         ┌───┐
all L  │ L x L scores │         │ q │◀─ k1 v1 ◀─ k2 v2 ◀─ k3 v3 ...
queries│ in memory    │         └───┘
       └──────────────┘         kept for each query, as blocks pass:
written or read 6 times:        maximum, sum, output so far
q k^T, / sqrt(d), softmax, v    scores never leave the chip
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `naive` | products, scaling, softmax as separate operations | baseline, 2.80 ms, peak 2.2 GiB | scores go through memory six times |
| `math` | PyTorch's own separate operations | 0.26x, peak 4.9 GiB | converts bf16 to fp32, checks for rows without any key |
| `flash` | FlashAttention-2; on a CPU a blocked loop | 3.6x, peak 161 MiB | scores stay on the chip |
| `cudnn` | a fused kernel of cuDNN | 6.9x, peak 160 MiB | the same, at 84 % of the roof of the tensor cores |
| `in_triton` | a fused kernel of some forty lines | 5.5x, peak 160 MiB | uses Hopper's `wgmma` (matrix instructions), but no warps that only load |

## Why memory is the limit of `naive`

Attention computes softmax(q k^T / sqrt(d)) v for each head. At a length L of 8192 the scores of a
head take 128 MiB in bf16 and 256 MiB in fp32 (the torch.compile tutorial's figure). The table is of
32 heads at 4096: 1 GiB of scores in bf16. `naive` has two such matrices at a time. In bf16:

    FLOPs = 4 L^2 d, in two products
    bytes = 6 * 2 L^2
    at d = 128: 43 FLOP/byte, far below the ridge of a GPU

## What flash attention does

For each query it keeps the maximum of its scores so far and the sum of their exponentials. Where a
new block raises the maximum, the sum and the output so far are scaled down to it. That is exact, no
approximation, with the same two products; results differ by rounding only. The limit becomes
arithmetic: tensor cores, and exponentials, of which an SM of Hopper does only 16 in a clock. The
best kernels compute the softmax of one block during the products of another. In `in_triton` the
compiler does not.

## What the source says, and what to try

The torch.compile tutorial promises 2-4x and O(N) memory. The factor depends on the length, and on
the baseline. With `--sweep length=512,1024,...` twice the length makes the peak of `naive` and
`math` 4x, of the others 2x, once scores are the largest tensors.

`--set backward=true` adds the backward pass (not in `in_triton`). `naive` and `math` keep their
weights for it. Fused kernels keep one number for each query, and compute the scores again:

    14 L^2 d FLOPs in place of 12

## Where it helps less

Where L is not much larger than d. And without `sdpa_kernel`, which chooses the kernel, PyTorch
takes one that supports the inputs: `math`, silently, if no other does.
"""

import math as numbers

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from gpulab import Scenario, Work, tune

try:
    import triton
    import triton.language as tl
except ImportError:  # the variant says that it needs it
    triton = None

scenario = Scenario(
    topic="Triton, compilers, attention",
    roof="matrix",
    clock="device",
    params={
        "batch": 2,
        "heads": 16,
        "length": 4096,
        "width": 128,
        "dtype": "bf16",
        "backward": False,
    },
    cpu={"batch": 1, "heads": 4, "length": 512, "width": 64, "dtype": "fp32"},
    smoke={"batch": 1, "heads": 2, "length": 100, "width": 32},
    sweep={"length": (512, 1024, 2048, 4096, 8192)},
    item="token",
    claim="torch.compile tutorial: 2-4x, O(N) memory in place of 256 MB a head at 8192",
    shows="memory",
    terms=("flash attention", "sdpa", "online softmax", "transformer"),
)
_DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
_LOG2_E = numbers.log2(numbers.e)
_CONFIGS = [
    {"rows": rows, "columns": columns, "warps": warps, "stages": stages}
    for rows, columns, warps, stages in (
        (64, 64, 4, 3),
        (64, 64, 4, 2),
        (64, 128, 4, 2),
        (128, 32, 4, 4),
        (128, 64, 8, 3),
        (128, 64, 8, 2),
        (128, 128, 8, 3),
    )
]
_SDPA = torch.nn.functional.scaled_dot_product_attention


@scenario.variant
def naive(lab, batch, heads, length, width, dtype, backward):
    """The scores, their scaling, their softmax and the weighted sum, each through memory."""
    return _work(lab, (batch, heads, length, width), dtype, backward, _separately, passes=(6, 9))


@scenario.variant
def math(lab, batch, heads, length, width, dtype, backward):
    """scaled_dot_product_attention by separate operations too, in fp32 where the inputs are bf16."""
    return _of_torch(
        lab, (batch, heads, length, width), dtype, backward, SDPBackend.MATH, passes=(6, 7)
    )


@scenario.variant
def flash(lab, batch, heads, length, width, dtype, backward):
    """scaled_dot_product_attention by FlashAttention-2: one kernel, no scores in memory."""
    return _of_torch(
        lab, (batch, heads, length, width), dtype, backward, SDPBackend.FLASH_ATTENTION
    )


@scenario.variant(needs=("cuda",))
def cudnn(lab, batch, heads, length, width, dtype, backward):
    """scaled_dot_product_attention by cuDNN: one kernel, no scores in memory."""
    return _of_torch(
        lab, (batch, heads, length, width), dtype, backward, SDPBackend.CUDNN_ATTENTION
    )


@scenario.variant(needs=("cuda", "triton"))
def in_triton(lab, batch, heads, length, width, dtype, backward):
    """The forward pass as one Triton kernel, written by hand, with the best of seven sizes of
    blocks.
    """
    if backward:
        lab.skip("the kernel of this lesson is the forward pass alone")
    if width not in (16, 32, 64, 128, 256):
        lab.skip(f"a head of {width} numbers: the kernel wants 16, 32, 64, 128 or 256")

    def make(rows, columns, warps, stages):
        grid = (triton.cdiv(length, rows), batch * heads)
        sizes = {
            "WIDTH": width,
            "ROWS": rows,
            "COLUMNS": columns,
            "num_warps": warps,
            "num_stages": stages,
        }

        def attend(q, k, v):
            out = torch.empty_like(q)
            _flash[grid](q, k, v, out, length, _LOG2_E / width**0.5, **sizes)
            return out

        return _work(lab, (batch, heads, length, width), dtype, backward, attend)

    return tune(lab, _CONFIGS, make)


if triton is not None:

    @triton.jit
    def _flash(
        q, k, v, out, length, scale, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
    ):
        """One program: ROWS queries of one head, against all of its keys. `scale` is for powers of
        2.
        """
        head = tl.program_id(1).to(tl.int64) * length * WIDTH
        rows, columns, across = (
            tl.program_id(0) * ROWS + tl.arange(0, ROWS),
            tl.arange(0, COLUMNS),
            tl.arange(0, WIDTH),
        )
        inside = (rows < length)[:, None]
        of_q, of_k = (
            rows[:, None] * WIDTH + across[None, :],
            columns[:, None] * WIDTH + across[None, :],
        )
        queries = tl.load(q + head + of_q, mask=inside, other=0.0)
        k += head
        v += head
        most = tl.full((ROWS,), float("-inf"), tl.float32)
        total = tl.zeros((ROWS,), tl.float32)
        sums = tl.zeros((ROWS, WIDTH), tl.float32)
        whole = length // COLUMNS * COLUMNS
        for start in range(0, whole, COLUMNS):
            keys, values = tl.load(k + start * WIDTH + of_k), tl.load(v + start * WIDTH + of_k)
            most, total, sums = _add(
                tl.dot(queries, tl.trans(keys)), values, scale, most, total, sums
            )
        if whole < length:
            left = (columns < length - whole)[:, None]
            keys = tl.load(k + whole * WIDTH + of_k, mask=left, other=0.0)
            values = tl.load(v + whole * WIDTH + of_k, mask=left, other=0.0)
            scores = tl.dot(queries, tl.trans(keys))
            scores = tl.where((columns < length - whole)[None, :], scores, float("-inf"))
            most, total, sums = _add(scores, values, scale, most, total, sums)
        sums /= total[:, None]
        tl.store(out + head + of_q, sums.to(out.dtype.element_ty), mask=inside)

    @triton.jit
    def _add(scores, values, scale, most, total, sums):
        """A block more: what was added so far is scaled down to the maximum now."""
        highest = tl.maximum(most, tl.max(scores, 1) * scale)
        weights, shrunk = tl.exp2(scores * scale - highest[:, None]), tl.exp2(most - highest)
        total = total * shrunk + tl.sum(weights, 1)
        return highest, total, tl.dot(weights.to(values.dtype), values, sums * shrunk[:, None])


def _separately(q, k, v):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ v


def _of_torch(lab, shape, dtype, backward, backend, passes=None):
    few = torch.zeros(
        1, 1, 64, shape[-1], dtype=_DTYPES[dtype], device=lab.device, requires_grad=backward
    )
    with sdpa_kernel(backend):
        try:
            _SDPA(few, few, few)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            lab.skip(
                f"not available in this build of PyTorch for this device, dtype and width: {error}"
            )
    return _work(lab, shape, dtype, backward, _SDPA, passes, context=lambda: sdpa_kernel(backend))


def _work(lab, shape, dtype, backward, attend, passes=None, context=None):
    """`passes` over all scores, forward and backward, are through memory; other kernels compute
    scores twice.
    """
    if (
        dtype == "bf16"
        and lab.device.type == "cpu"
        and not torch.ops.mkldnn._is_mkldnn_bf16_supported()
    ):
        lab.skip("this CPU has no instructions for bf16")
    batch, heads, length, width = shape
    given = [torch.randn(shape, device=lab.device, dtype=_DTYPES[dtype]) for _ in range(4)]
    *inputs, upstream = given
    for tensor in inputs:
        tensor.requires_grad_(backward)

    def step():
        with lab.useful():
            out = attend(*inputs)
            return (out, *torch.autograd.grad(out, inputs, upstream)) if backward else out

    products = (6 if passes else 7) if backward else 2
    # math is in fp32
    scores, size = batch * heads * length**2, 4 if attend is _SDPA and passes else given[0].itemsize
    through = sum(passes[: 1 + backward]) if passes else 0
    return Work(
        step,
        flops=products * 2 * scores * width,
        bytes=(11 if backward else 4) * given[0].nbytes + through * scores * size,
        dtype="fp32" if size == 4 else dtype,
        items=batch * length,
        inputs=given if backward else given[:-1],
        context=context,
    )
