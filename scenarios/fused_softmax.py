"""Fused softmax: a row that stays on the chip is read once, not five times.

The softmax of a row is exp(x - max) / sum(exp(x - max)). Written as operations on whole tensors,
`eager` is five kernels for three logical passes: the maximum reads the tensor; the difference and
the exponential read and write it; the sum reads it; the division reads and writes. That is five
reads and three writes, 32 bytes an element in fp32. One kernel that holds a row in registers needs
one read and one write, 8 bytes: 4x less traffic, and left of the ridge 4x is what it can gain.
The Triton guide has 3x, for exp, sum and scale; each in a kernel of its own that is 5 passes
against 2, or 2.5x, and without the maximum exp overflows in fp32 from 89 on.

`in_torch` is torch.softmax, which has such a kernel. `compiled` is the function of `eager`, of
which torch.compile makes one kernel, with loops that go through a row more than once; later passes
find it in L1 or L2. `in_triton` is written by hand: a program takes one row, or several short ones,
as one block in registers. The same bytes are declared for all, and an H200 tells them apart: 3.2x,
4.2x and 5.0x over `eager` (measured here). `in_triton` is at the roof of a copy: while a program
reduces its row, with some barriers, the programs beside it on the same SM (streaming
multiprocessor) keep the memory busy. More than 4x is possible as `eager` is at 77 % of that roof
itself.

It holds as long as a row fits. `--sweep columns` shows where it ends. Beyond 32768 floats a row no
longer fits into the registers of one program, and `in_triton` takes another kernel: it goes through
the row in pieces, with a running maximum and a running sum, which it scales down whenever the
maximum grows (online softmax, as in FlashAttention). Then it reads the row a second time to write
the result: 12 bytes an element, 1.5x the time. The second read comes from the L2 if the rows that
are at work at a time fit into it, one for each SM; as 12 bytes are declared, the rate may then be
above the roof. The other two have limits of their own, from which on they read a row two or three
times.

Short rows are another matter. With one row of 1 KiB for each program the GPU starts programs
instead of moving bytes, so a block has at least 4096 elements, here, of as many rows as it takes. A
length that is no multiple of 16 has its price as well: Triton then does not know where rows begin,
and loads single floats in place of four at a time (`--set columns=4095`; 4096 and 4095 are both in
the sweep). A block is a power of 2, so 4097 columns fill half of one.

On a CPU the rows stay in a cache instead of registers. `in_torch` and `compiled` were both about
2.6x there (our own measurement, one thread): the exponentials take a part of the time that fusion
does not save.
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
