"""Persistent matmul: as many programs as SMs, each of which computes many tiles.

A matmul is usually launched with a program for each tile of the result. A program loads its first
operands with nothing to compute, runs its loop along k, and at the end converts and stores its sums
while its tensor cores idle. Where one program fills a streaming multiprocessor (SM), as with tiles
of 128 x 256, no other program hides that: a latency of memory at the start of each tile, at its end
64 KiB to store.

`persistent` launches as many programs as the device has SMs, and each takes every so many-th tile.
The loop around the same code saves starting a program, and waiting for a place on an SM.
`flattened` makes one loop of both, over tiles and along k, by `tl.range(..., flatten=True)`: the
compiler starts loads of the next tile while the last steps of this one run, and during its store.
The tiles, their order and how many run at a time stay as they are. So does the tail: 2,048 tiles on
132 SMs are 15.5 rounds, which take the time of 16.

`by_tma` describes the matrices to the tensor memory accelerator (TMA) of Hopper and newer: one
instruction loads a whole tile with its bounds, and no thread computes addresses or masks. The loop
needs far fewer registers.

`specialized` adds `warp_specialize=True`, which divides warps into groups: some only load, others
start matrix instructions or store. Triton does this by itself on data-center Blackwell, where sums
are in a memory of the tensor cores and not in registers, and only for loads by TMA. Elsewhere the
variant is skipped, and it has only been compiled so far.

The Triton guide names persistence among its techniques. Work for a tile grows with k, starting and
ending it does not: at n = k = 8192 a tile takes some 90 us and a few of them can be hidden. On an
H200 `persistent` gains 1.03x, and the next two rungs cannot be told from it: all are at the power
cap, with cuBLAS, at its rate (measured here). At k = 512 a tile takes some 6 us, and more of it is
to be gained: `--sweep k=256,512,1024,2048,8192`. A price: tiles are assigned before the start, so
an SM that is slower, or that another stream uses, delays the whole result.

`cublas` is for scale; its kernels for Hopper have warps that only load as well. Look at the
registers, and at cp.async against bulk copies in the code. Tiles are as in `triton_matmul`.
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
    """A program for each tile."""
    return _product(lab, (m, n, k), dtype, (block_m, block_n, block_k, group), warps, stages, _one)


@scenario.variant
def persistent(lab, m, n, k, dtype, block_m, block_n, block_k, warps, stages, group):
    """A program for each SM, with a loop over tiles around the loop along k."""
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
    """Both loops made one, so that loads of the next tile begin before this one is stored."""
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
    """The flattened loop with tiles loaded and stored by the tensor memory accelerator."""
    _require_tma(lab, n, k, least=(9, 0))
    return _through_tma(
        lab, (m, n, k), dtype, (block_m, block_n, block_k, group), warps, stages, split=False
    )


@scenario.variant
def specialized(lab, m, n, k, dtype, block_m, block_n, block_k, warps, stages, group):
    """Warps with different tasks: to load, to start matrix instructions, to store."""
    _require_tma(lab, n, k, least=(10, 0))
    return _through_tma(
        lab, (m, n, k), dtype, (block_m, block_n, block_k, group), warps, stages, split=True
    )


@scenario.variant(against=None)
def cublas(lab, m, n, k, dtype):
    """torch.mm, which is cuBLAS."""
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
