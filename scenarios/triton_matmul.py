"""Triton matmul: the size of the tiles decides, then the order in which they are computed.

**In short:** a tile must be large enough to feed the tensor cores from the L2, and tiles that run together should share operands.

```text
tuned: row by row, 132 tiles       grouped: 8 rows, 132 tiles
████████████████████████████████   █████████████████···············
████████████████████████████████   █████████████████···············
████████████████████████████████   █████████████████···············
████████████████████████████████   █████████████████···············
████····························   ████████████████················
································   ████████████████················
································   ████████████████················
································   ████████████████················
about 8,700 rows and columns       about 5,200 rows and columns
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `untuned` | tiles of 32 x 32, 4 warps, 3 stages | baseline, 12.3 ms, 12 % of the measured bf16 roof, 772 TFLOP/s | 16 FLOPs for a byte from the L2; no `wgmma` |
| `tuned` | the best of ten configurations | 8.06x, 1.52 ms, 94 % | mostly 128 x 256: 85 FLOPs for a byte, by `wgmma` |
| `grouped` | the order of tiles, and chosen anew | 8.42x, 1.46 ms; 1.04x over `tuned` | tiles at work together share more operands in the L2 |
| `cublas` | the library, for scale | 1.44 ms | loads by TMA, tiles multicast to two SMs, warps that only load |

## What the size of a tile decides

All variants are one kernel, with bf16 operands and fp32 sums. Triton distributes a tile over
threads and picks instructions. It does not choose the tile's size, its warps, how many steps along
k are under way (`num_stages`), or the order of tiles. For each step along k a tile of p x q has

    2 p q FLOPs / 2 (p + q) bytes = 16 at 32 x 32, 85 at 128 x 256

At 16 an H200's tensor cores (989 TFLOP/s by the datasheet) would need 62 TB/s from the L2, many
times what it delivers. Hopper's fastest instruction, `wgmma`, computes 64 rows for four warps together; smaller
tiles are left with Ampere's `mma.sync`. Larger tiles need registers: at 128 x 256 eight warps hold
the sums in 128 registers of each thread, and one program fills an SM.

## How it is tuned

`gpulab.tune` measures all ten in rounds, in random order, then the best few in pairs. One after the
other, the first would run on a cool GPU and the last under its power cap. Several are within a
percent or two; 64-wide tiles are not. At `--set n=1024` smaller tiles win: large ones leave most
SMs idle.

## What the order decides

Programs that run together share loads through the L2. At n = 8192 and 128 x 256, a row of the
result is 32 tiles. 132 SMs work on 4 rows of tiles, or on 8 rows by 16.5 columns:

    4 x 128 + 32 x 256 = 8,704      8 x 128 + 16.5 x 256 = 5,248

Rows and columns of 8192 bf16 numbers, in 15.5 rounds, make 2.2 and 1.3 GB of DRAM traffic, if
programs stay in step. That is well below what 1.5 ms allow, so expect a few percent. More at n =
16384 (`--sweep`), and nothing where both operands fit into the L2.

## What the source says

Tiling and auto-tuning reach tensor-core throughput, says the Triton guide. On an H200 they reach
cuBLAS and the power cap, where clocks fall. The slow `untuned` lets the GPU cool in between: alone
the others take 14 to 17 % more time than in the table.
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
    """Tiles of 32 x 32, Triton's default warps and stages, row by row: the baseline."""
    return _product(*_matrices(lab, m, n, k, dtype), tile="32x32x32", warps=4, stages=3, group=1)


@scenario.variant
def tuned(lab, m, n, k, dtype):
    """The best of ten configurations in place of 32 x 32, row by row."""
    return tune(lab, _CONFIGS, partial(_product, *_matrices(lab, m, n, k, dtype), group=1))


@scenario.variant
def grouped(lab, m, n, k, dtype, group):
    """The best of them in groups of rows, not row by row, so that programs running together load
    less.
    """
    return tune(lab, _CONFIGS, partial(_product, *_matrices(lab, m, n, k, dtype), group=group))


@scenario.variant(against=None)
def cublas(lab, m, n, k, dtype):
    """torch.mm, which is cuBLAS: for scale, not compared."""
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
