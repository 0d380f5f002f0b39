"""Persistent matmul: as many programs as SMs, each of which computes many tiles.

**In short:** one program for each SM, which computes tile after tile, hides part of each tile's start and end: a few percent of a large matmul.

```text
one SM, three tiles, time ─────────────────▶         not to scale

one_tile    ▸▒▒██████░░ ▸▒▒██████░░ ▸▒▒██████░░
persistent  ▸▒▒██████░░▒▒██████░░▒▒██████░░
flattened   ▸▒▒██████░░██████░░██████░░
                    ▒▒      ▒▒      loads of the next tile

   ▸ start of a program   ▒ first loads of a tile, nothing to compute
   █ loop along k         ░ store of the tile, tensor cores idle
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `one_tile` | a program for each of the 2,048 tiles | baseline, 1.61 ms, 97 % of the bf16 roof | nothing hides the start and the end of a tile |
| `persistent` | a program for each SM, with a loop over tiles | 1.03x | no start of a program, no wait for a place on an SM |
| `flattened` | one loop over tiles and along k | 1.04x, not to be told from `persistent` | loads of the next tile start before this one is stored |
| `by_tma` | one instruction loads a whole tile | 1.045x, the *same* as `flattened` | no thread computes addresses or masks; far fewer registers |
| `specialized` | some warps only load, others start matrix instructions or store | skipped on an H200: needs a data-center Blackwell GPU; only compiled so far | each task has its own warps |
| `cublas` | the library, for scale | 1.56 ms | its Hopper kernels have warps that only load, too |

## What a tile costs beside its arithmetic

A program is one instance of a Triton kernel, and runs on a streaming multiprocessor (SM). It loads
its first operands with nothing to compute. At the end it converts and stores its sums, 64 KiB, and
the tensor cores idle. A program with a tile of 128 x 256 fills its SM, so no other program hides
that.

`persistent` launches as many programs as there are SMs. Program p of P takes the tiles

    p, p + P, p + 2 P, ...

`flattened` adds `tl.range(..., flatten=True)`: the compiler starts loads of the next tile while the
last steps of this one run, and during its store. `by_tma` gives the matrices to the tensor memory
accelerator (TMA, Hopper and newer), which computes addresses and bounds.

## Why the gain is small here

The work of a tile grows with k; starting and ending it does not. At k = 8192 a tile takes some 90
us (H200), of which a few can be hidden. All variants, and cuBLAS, are at the power cap: the GPU
lowers its clock, which leaves less to gain. At k = 512 a tile takes some 6 us, and more of it can
be gained: `--sweep k=256,512,1024,2048,8192`.

## What it does not change

Tiles, their order, and how many run at a time. So the tail stays:

    2,048 tiles / 132 SMs = 15.5 rounds, which take the time of 16

A price: tiles are assigned before the start. An SM that is slower, or that another stream uses,
delays the whole result.

## What the source says

The Triton guide names persistence and warp specialization, without a figure. Triton specializes
warps by itself (`warp_specialize=True`), only for loads by TMA and where a memory of the tensor
cores holds the sums. Look at the registers, and at cp.async against bulk copies in the code. Tiles
are as in `triton_matmul`.
"""

import torch

from gpulab import Scenario, Work

try:
    import triton
    import triton.language as tl
    from triton.language import constexpr
except ImportError:  # the scenario says that it needs it
    triton = None

scenario = Scenario(
    topic="Triton, compilers, attention",
    needs=("cuda", "triton"),
    roof="matrix",
    clock="device",
    params={
        "m": 8192,
        "n": 8192,
        "k": 8192,
        "dtype": "bf16",
        "block_m": 128,
        "block_n": 256,
        "block_k": 64,
        "warps": 8,
        "stages": 3,
        "group": 8,
    },
    smoke={"m": 304, "n": 208, "k": 104},
    sweep={"k": (256, 512, 1024, 2048, 8192), "stages": (2, 3), "group": (1, 8, 16)},
    ladder=True,
    item="element",
    claim="Triton guide: persistent kernels and warp specialization",
    no_effect_reason="starting and ending a tile is a small part of it at this k, or power is the limit",
    terms=("gemm", "stream-k", "tma", "warp specialization"),
)
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


@scenario.variant
def one_tile(lab, m, n, k, dtype, block_m, block_n, block_k, warps, stages, group):
    """A program for each tile: each starts, computes its tile and ends. The baseline."""
    return _product(lab, (m, n, k), dtype, (block_m, block_n, block_k, group), warps, stages, _one)


@scenario.variant
def persistent(lab, m, n, k, dtype, block_m, block_n, block_k, warps, stages, group):
    """A program for each SM, with a loop over tiles around the loop along k, in place of a program
    for each tile.
    """
    return _product(
        lab,
        (m, n, k),
        dtype,
        (block_m, block_n, block_k, group),
        warps,
        stages,
        _many,
        FLATTEN=False,
    )


@scenario.variant
def flattened(lab, m, n, k, dtype, block_m, block_n, block_k, warps, stages, group):
    """The two loops of `persistent` made one, so that loads of the next tile begin before this one
    is stored.
    """
    return _product(
        lab,
        (m, n, k),
        dtype,
        (block_m, block_n, block_k, group),
        warps,
        stages,
        _many,
        FLATTEN=True,
    )


@scenario.variant
def by_tma(lab, m, n, k, dtype, block_m, block_n, block_k, warps, stages, group):
    """The flattened loop, with tiles loaded and stored by the tensor memory accelerator in place of
    the threads.
    """
    _require_tma(lab, n, k, least=(9, 0))
    return _through_tma(
        lab, (m, n, k), dtype, (block_m, block_n, block_k, group), warps, stages, split=False
    )


@scenario.variant
def specialized(lab, m, n, k, dtype, block_m, block_n, block_k, warps, stages, group):
    """The kernel of `by_tma`, with warps of different tasks: to load, to start matrix instructions,
    to store.
    """
    _require_tma(lab, n, k, least=(10, 0))
    return _through_tma(
        lab, (m, n, k), dtype, (block_m, block_n, block_k, group), warps, stages, split=True
    )


@scenario.variant(against=None)
def cublas(lab, m, n, k, dtype):
    """torch.mm, which is cuBLAS: for scale, not compared."""
    return _work(lab, (m, n, k), dtype, lambda a, b, c: lambda: torch.mm(a, b, out=c))


if triton is not None:

    @triton.jit
    def _place(tile, m, n, M: constexpr, N: constexpr, GROUP: constexpr):
        """Where a tile begins: in groups of GROUP rows of tiles, column by column."""
        down, across = tl.cdiv(m, M), tl.cdiv(n, N)
        first = tile // (GROUP * across) * GROUP
        place, height = tile % (GROUP * across), tl.minimum(down - first, GROUP)
        return (first + place % height) * M, place // height * N

    @triton.jit
    def _tile(tile, a, b, c, m, n, k, M: constexpr, N: constexpr, K: constexpr, GROUP: constexpr):
        """One tile of c = a b, in steps of K."""
        top, side = _place(tile, m, n, M, N, GROUP)
        rows, columns, steps = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
        in_rows, in_columns = (top + rows < m)[:, None], (side + columns < n)[None, :]
        of_a, of_b = rows[:, None] * k + steps[None, :], steps[:, None] * n + columns[None, :]
        a += tl.cast(top, tl.int64) * k
        b += side
        sums = tl.zeros((M, N), dtype=tl.float32)
        for start in range(0, k, K):
            left = tl.load(a + start + of_a, mask=in_rows & (steps < k - start)[None, :], other=0.0)
            from_row = b + tl.cast(start, tl.int64) * n
            right = tl.load(
                from_row + of_b, mask=in_columns & (steps < k - start)[:, None], other=0.0
            )
            sums = tl.dot(left, right, sums)
        c += tl.cast(top, tl.int64) * n + side
        tl.store(
            c + rows[:, None] * n + columns[None, :],
            sums.to(c.dtype.element_ty),
            mask=in_rows & in_columns,
        )

    @triton.jit
    def _one(a, b, c, m, n, k, M: constexpr, N: constexpr, K: constexpr, GROUP: constexpr):
        _tile(tl.program_id(0), a, b, c, m, n, k, M, N, K, GROUP)

    @triton.jit
    def _many(
        a,
        b,
        c,
        m,
        n,
        k,
        M: constexpr,
        N: constexpr,
        K: constexpr,
        GROUP: constexpr,
        FLATTEN: constexpr,
    ):
        tiles = tl.cdiv(m, M) * tl.cdiv(n, N)
        for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLATTEN):
            _tile(tile, a, b, c, m, n, k, M, N, K, GROUP)

    @triton.jit
    def _described(
        a,
        b,
        c,
        m,
        n,
        k,
        M: constexpr,
        N: constexpr,
        K: constexpr,
        GROUP: constexpr,
        SPLIT: constexpr,
    ):
        """The same with descriptors, which know where the matrices end."""
        tiles = tl.cdiv(m, M) * tl.cdiv(n, N)
        for tile in tl.range(
            tl.program_id(0), tiles, tl.num_programs(0), flatten=True, warp_specialize=SPLIT
        ):
            top, side = _place(tile, m, n, M, N, GROUP)
            sums = tl.zeros((M, N), dtype=tl.float32)
            for start in range(0, k, K):
                sums = tl.dot(a.load([top, start]), b.load([start, side]), sums)
            c.store([top, side], sums.to(c.dtype))


def _require_tma(lab, n, k, least):
    capability = (
        torch.cuda.get_device_capability(lab.device) if lab.device.type == "cuda" else least
    )
    if not least <= capability < (12, 0):
        lab.skip(
            f"needs a data-center GPU of compute capability {least[0]}.0 or newer: this one has "
            f"{capability}"
        )
    if n % 8 or k % 8:
        lab.skip(
            "the tensor memory accelerator wants rows of a multiple of 16 bytes: n and k "
            "multiples of 8"
        )


def _through_tma(lab, sizes, dtype, tile, warps, stages, split):
    from triton.tools.tensor_descriptor import TensorDescriptor

    def describe(*matrices):
        block_m, block_n, block_k, _ = tile
        shapes = [block_m, block_k], [block_k, block_n], [block_m, block_n]
        return [TensorDescriptor.from_tensor(*pair) for pair in zip(matrices, shapes, strict=True)]

    return _product(lab, sizes, dtype, tile, warps, stages, _described, describe, SPLIT=split)


def _product(
    lab, sizes, dtype, tile, warps, stages, kernel, operands=lambda *matrices: matrices, **more
):
    (m, n, k), (block_m, block_n, block_k, group) = sizes, tile
    tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    programs = tiles if kernel is _one else min(tiles, lab.sms or 2)
    constants = {"M": block_m, "N": block_n, "K": block_k, "GROUP": group, **more}

    def make(*matrices):
        given = operands(*matrices)
        return lambda: kernel[(programs,)](
            *given, m, n, k, **constants, num_warps=warps, num_stages=stages
        )

    work = _work(lab, sizes, dtype, make)
    try:
        work.step()  # compiles
    except triton.runtime.errors.OutOfResources as error:
        lab.skip(f"this configuration does not fit the device: {error}")
    return work


def _work(lab, sizes, dtype, make):
    m, n, k = sizes
    a, b, c = (
        torch.randn(rows, columns, device=lab.device, dtype=_DTYPES[dtype])
        for rows, columns in ((m, k), (k, n), (m, n))
    )
    size = a.nbytes + b.nbytes + c.nbytes
    return Work(
        make(a, b, c),
        flops=2 * m * n * k,
        bytes=size,
        dtype=dtype,
        items=m * n,
        inputs=(a, b),
        output=c,
    )
