"""Fused softmax: a row that stays on the chip is read once, not five times.

**In short:** five kernels move 32 bytes an element through memory, and one kernel that keeps the row on the chip moves 8.

```text
        reads    kernel      writes     bytes an element
eager   x  ────▶ maximum ──▶ m              4
        x  ────▶ x - m   ──▶ d          4 + 4
        d  ────▶ exp     ──▶ e          4 + 4
        e  ────▶ sum     ──▶ s              4
        e  ────▶ e / s   ──▶ y          4 + 4     32 in all

fused   x  ────▶ all of it, the
                 row on chip ──▶ y      4 + 4      8 in all
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `eager` | five kernels, each over the whole tensor | baseline, at 77 % of the roof | five reads and three writes |
| `in_torch` | `torch.softmax`, a kernel of the library | 3.2x; 2.6x on one CPU thread | one read and one write, 8 bytes an element |
| `compiled` | `torch.compile` of `eager` | 4.2x; 2.6x on one CPU thread | one kernel; later passes over a row find it in L1 or L2 |
| `in_triton` | one kernel by hand, a row in registers | 5.0x, at the roof of a copy | while a program reduces its row, others on the same SM keep the memory busy |

## What fusion saves

    softmax(x) = exp(x - max) / sum(exp(x - max))
    (5 + 3) * 4 bytes against (1 + 1) * 4 bytes = 4x

Left of the ridge 4x is what the traffic can gain. `in_triton` gains more, as `eager` is below its
roof itself. The fused variants declare the same 8 bytes, and the H200 tells them apart.

## Where it ends

Beyond 32768 floats a row no longer fits into the registers of one program (`--sweep columns`).
Then `in_triton` goes through the row in pieces with a running maximum and sum (online softmax, as
in FlashAttention). A second read for the result makes 12 bytes an element, 1.5x the time. It comes
from the L2 if the rows at work, one for each SM, fit. The rate may then exceed the roof. The
others read a row two or three times from limits of their own on.

## Lengths that cost

One row of 1 KiB for each program starts programs instead of moving bytes, so a block has 4096
elements or more. If the length is no multiple of 16, Triton loads single floats, not four at a time
(`--set columns=4095`). Blocks are powers of 2: 4097 columns fill half of one. On a CPU rows stay in
a cache, and the exponentials take time that fusion does not save.

## What the source says

The Triton guide has 3x, for exp, sum and scale. As three kernels that is 5 passes against 2, or
2.5x. Without the maximum exp overflows in fp32 from 89 on.
"""

from functools import partial

import torch

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
    cpu={"mib": 16},
    smoke={"mib": 1, "columns": 1000},
    sweep={"columns": (256, 1024, 4096, 4095, 16384, 32768, 65536, 262144)},
    ladder=True,
    item="element",
    claim="Triton guide: 3x less traffic",
    terms=("fusion", "kernel fusion", "online softmax", "triton"),
)
# elements: of a row in registers, of a block, of a warp
_LONGEST, _TILE, _PER_WARP = 32768, 4096, 512


@scenario.variant
def eager(lab, mib, columns):
    """Maximum, difference, exponential, sum and division, each over the whole tensor."""
    return _work(lab, mib, columns, _softmax, passes=8)


@scenario.variant
def in_torch(lab, mib, columns):
    """torch.softmax: one kernel of the library."""
    return _work(lab, mib, columns, lambda rows: torch.softmax(rows, dim=1), passes=2)


@scenario.variant(needs=("compiler",))
def compiled(lab, mib, columns):
    """The function of the first variant, compiled into one kernel."""
    return _work(lab, mib, columns, torch.compile(_softmax), passes=2)


@scenario.variant(needs=("cuda", "triton"))
def in_triton(lab, mib, columns):
    """One Triton kernel, which reads a row once if it fits, and twice if not."""
    return _work(lab, mib, columns, _by_triton, passes=2 if columns <= _LONGEST else 3)


def _softmax(rows):
    powers = torch.exp(rows - rows.amax(dim=1, keepdim=True))
    return powers / powers.sum(dim=1, keepdim=True)


def _by_triton(rows):
    out, (count, columns) = torch.empty_like(rows), rows.shape
    if columns > _LONGEST:
        # few rows at a time, for the L2
        _long[(count,)](rows, out, columns, BLOCK=_LONGEST // 2, num_warps=32)
        return out
    block = triton.next_power_of_2(columns)
    high = max(1, _TILE // block)
    warps = min(32, high * block // _PER_WARP)
    _short[(triton.cdiv(count, high),)](
        rows, out, count, columns, HIGH=high, BLOCK=block, num_warps=warps
    )
    return out


if triton is not None:

    @triton.jit
    def _short(rows, out, count, columns, HIGH: tl.constexpr, BLOCK: tl.constexpr):
        """One program has HIGH whole rows in registers."""
        row = tl.program_id(0).to(tl.int64) * HIGH + tl.arange(0, HIGH)[:, None]
        column = tl.arange(0, BLOCK)[None, :]
        place, inside = row * columns + column, (row < count) & (column < columns)
        value = tl.load(rows + place, mask=inside, other=float("-inf"))
        value = tl.exp(value - tl.max(value, axis=1)[:, None])
        tl.store(out + place, value / tl.sum(value, axis=1)[:, None], mask=inside)

    @triton.jit
    def _long(rows, out, columns, BLOCK: tl.constexpr):
        """One program goes through one row twice; each place of a block has a maximum and a sum of
        its own.
        """
        first, place = tl.program_id(0).to(tl.int64) * columns, tl.arange(0, BLOCK)
        most = tl.full((BLOCK,), float("-inf"), tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, columns, BLOCK):
            inside, part = start + place < columns, rows + first + start + place
            value = tl.load(part, mask=inside, other=float("-inf"), eviction_policy="evict_last")
            higher = tl.maximum(most, value)
            base = tl.where(higher == float("-inf"), 0.0, higher)  # -inf - -inf is NaN
            total = total * tl.exp(most - base) + tl.exp(value - base)
            most = higher
        top = tl.max(most, axis=0)
        scale = 1.0 / tl.sum(total * tl.exp(most - top), axis=0)
        for start in range(0, columns, BLOCK):
            inside = start + place < columns
            value = tl.load(
                rows + first + start + place, mask=inside, eviction_policy="evict_first"
            )
            tl.store(out + first + start + place, tl.exp(value - top) * scale, mask=inside)


def _work(lab, mib, columns, softmax, passes):
    rows = torch.randn(max(1, mib * MiB // 4 // columns), columns, device=lab.device)
    rows *= 1 + torch.rand(rows.shape[0], 1, device=lab.device)  # no two rows have the same spread

    step = partial(softmax, rows)
    return Work(
        step,
        bytes=passes * rows.nbytes,
        flops=5 * rows.numel(),
        dtype="fp32",
        items=rows.numel(),
        inputs=rows,
    )
