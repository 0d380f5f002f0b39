"""Triton matmul: the size of the tiles decides, then the order in which they are computed.

In Triton a kernel is written for one tile of the result, and the compiler distributes it over
threads, stages operands in shared memory and picks matrix instructions. What it does not choose is
how large the tile is, how many warps share it, how many steps along k are in flight (`num_stages`),
and which tile a program computes. All variants are one kernel with bf16 operands and fp32 sums;
only these numbers differ.

`untuned` has tiles of 32 x 32, with Triton's default of 4 warps and 3 stages. A tile of p x q does
2 p q FLOPs for each p + q numbers that it loads: at 32 x 32, 16 FLOPs for a byte. The tensor cores
of an H200 (989 TFLOP/s) would need 62 TB/s from its L2 cache, many times what that delivers. The
tile is also too small for their fastest instruction: Hopper's `wgmma` computes 64 rows for four
warps together, and smaller tiles are left with `mma.sync`, that of Ampere.

`tuned` chooses among ten configurations (`gpulab.tune`): all are measured in rounds, in random
order, then the best few in pairs; one after the other, the first would run on a cool GPU and the
last under its power cap. Mostly 128 x 256 wins, 85 FLOPs for a byte, by `wgmma`: eight warps hold
the sums in 128 registers of each thread, and stages of 24 or 48 KiB hide the latency of loads, so
one program fills an SM. Look at the table: several are within a percent or two, 64-wide tiles are
not, and what taking the second would cost. At `--set n=1024` it chooses smaller tiles: large ones
leave most SMs idle.

`grouped` changes the order only, and chooses anew. Programs that run at the same time share what
they load through the L2. Row by row, 132 tiles of 128 x 256 are 4 rows of tiles and all 32 columns
at n = 8192: at each step along k they load slices of 8,704 rows of the operands. In groups of 8
rows they cover 8 x 16.5 tiles, and load 5,248. So the traffic to DRAM falls from 2.2 to 1.3 GB, if
they stay in step. That is well below what 1.5 ms allow, so expect a few percent at this size, and
more at n = 16384, where a row is 64 tiles (`--sweep`). Where both operands fit into the L2 expect
nothing.

`cublas` is for scale. Its Hopper kernels load by the tensor memory accelerator (TMA), multicast
tiles to two SMs and have warps that only load, which this kernel has not. On an H200 all of them
are at the power cap, where the clocks fall until what is left is energy for each FLOP: 1.52 ms,
1.46 ms and 1.44 ms in turn with the slow `untuned`, which lets the GPU cool, and 14 to 17 % more
alone, as in the tuning (measured here).
"""

from functools import partial

import torch

from gpulab import Scenario, Work, tune

try:
    import triton
    import triton.language as tl
except ImportError:  # the scenario says that it needs it
    triton = None

scenario = Scenario(
    topic="Triton, compilers, attention",
    needs=("cuda", "triton"),
    roof="matrix",
    clock="device",
    params={"m": 8192, "n": 8192, "k": 8192, "dtype": "bf16", "group": 8},
    smoke={"m": 300, "n": 200, "k": 100},
    sweep={"n": (1024, 4096, 8192, 16384), "group": (1, 4, 8, 16)},
    ladder=True,
    item="element",
    claim="Triton guide: tiling and auto-tuning reach tensor-core throughput",
    terms=("tile", "gemm", "autotune", "tensor core"),
)
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_CONFIGS = [
    {"tile": tile, "warps": warps, "stages": stages}
    for tile, warps, stages in (
        ("128x256x64", 8, 4),
        ("128x256x64", 8, 3),
        ("128x256x32", 8, 4),
        ("256x128x64", 8, 3),
        ("256x128x64", 8, 4),
        ("128x128x64", 4, 3),
        ("128x128x64", 8, 4),
        ("128x128x128", 8, 3),
        ("64x256x64", 4, 4),
        ("64x128x64", 4, 4),
    )
]


@scenario.variant
def untuned(lab, m, n, k, dtype):
    """Tiles of 32 x 32, Triton's default warps and stages, row by row."""
    return _product(*_matrices(lab, m, n, k, dtype), tile="32x32x32", warps=4, stages=3, group=1)


@scenario.variant
def tuned(lab, m, n, k, dtype):
    """The best of ten configurations, row by row."""
    return tune(lab, _CONFIGS, partial(_product, *_matrices(lab, m, n, k, dtype), group=1))


@scenario.variant
def grouped(lab, m, n, k, dtype, group):
    """The best of them in groups of rows, so that programs running together load less."""
    return tune(lab, _CONFIGS, partial(_product, *_matrices(lab, m, n, k, dtype), group=group))


@scenario.variant(against=None)
def cublas(lab, m, n, k, dtype):
    """torch.mm, which is cuBLAS."""
    a, b, c = _matrices(lab, m, n, k, dtype)
    return _work(a, b, c, lambda: torch.mm(a, b, out=c))


if triton is not None:

    @triton.jit
    def _tile(
        a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr
    ):
        """One program computes M x N of c = a b, in steps of K."""
        down, across = tl.cdiv(m, M), tl.cdiv(n, N)
        first = tl.program_id(0) // (GROUP * across) * GROUP
        place, height = tl.program_id(0) % (GROUP * across), tl.minimum(down - first, GROUP)
        top, side = (first + place % height) * M, place // height * N

        rows, columns, steps = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
        in_rows, in_columns = (top + rows < m)[:, None], (side + columns < n)[None, :]
        a += top.to(tl.int64) * k
        b += side
        of_a, of_b = rows[:, None] * k + steps[None, :], steps[:, None] * n + columns[None, :]
        sums = tl.zeros((M, N), dtype=tl.float32)
        for start in range(0, k, K):
            left = tl.load(a + of_a, mask=in_rows & (steps < k - start)[None, :], other=0.0)
            right = tl.load(b + of_b, mask=in_columns & (steps < k - start)[:, None], other=0.0)
            sums = tl.dot(left, right, sums)
            a += K
            b += K * tl.cast(n, tl.int64)
        c += top.to(tl.int64) * n + side
        tl.store(
            c + rows[:, None] * n + columns[None, :],
            sums.to(c.dtype.element_ty),
            mask=in_rows & in_columns,
        )


def _product(a, b, c, tile, warps, stages, group):
    (m, k), n = a.shape, b.shape[1]
    block_m, block_n, block_k = map(int, tile.split("x"))
    programs = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    sizes = {"M": block_m, "N": block_n, "K": block_k, "GROUP": group}
    return _work(
        a,
        b,
        c,
        lambda: _tile[(programs,)](a, b, c, m, n, k, **sizes, num_warps=warps, num_stages=stages),
    )


def _matrices(lab, m, n, k, dtype):
    shapes = (m, k), (k, n), (m, n)
    return [
        torch.randn(rows, columns, device=lab.device, dtype=_DTYPES[dtype])
        for rows, columns in shapes
    ]


def _work(a, b, c, multiply):
    (m, k), n = a.shape, b.shape[1]
    size, dtype = a.nbytes + b.nbytes + c.nbytes, "bf16" if a.dtype == torch.bfloat16 else "fp16"
    return Work(
        multiply, flops=2 * m * n * k, bytes=size, dtype=dtype, items=m * n, inputs=(a, b), output=c
    )
