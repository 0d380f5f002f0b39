"""Shared-memory tiling: a matmul is fast once each loaded number feeds many operations.

**In short:** tiles in shared memory alone gain little over an L1 cache; 8 x 8 outputs in the registers of each thread gain sevenfold.

```text
one thread, one step along k; a number is read for each a and b,
and c += a b, an FMA, is done for each c

       b               b b b b b b b b     blocked: 8 x 8 outputs,
     a c             a c c c c c c c c     16 numbers (4 loads of
                     a c c c c c c c c     16 bytes) for 64 FMAs
naive, tiled:        a c c c c c c c c
1 output, 2          a c c c c c c c c
numbers for          ... 4 more rows
1 FMA
```

| variant | what changes | expected (H100) | why |
|---|---|---|---|
| `naive` | one thread for each output | baseline, 23.4 ms, 10 % of the fp32 roof | two loads for an FMA, mostly from the L1 |
| `tiled` | tiles of 32 x 32 in shared memory | 1.45x, 15 % | no load waits for a miss; 5 loads for 4 FMAs, not 8 |
| `blocked` | 8 x 8 outputs in registers, a block of 128 x 128 | 7.15x, 72 % | 4 loads of 16 bytes for 64 FMAs |
| `cublas` | `torch.mm` with TF32 off, for scale | 2.66 ms, 86 % | chosen for the shape from many kernels |

## What limits the simple kernel

A matmul of n x n has n / 6 FLOPs for each byte of its operands, so memory bandwidth is not its
limit. The way from on-chip memory to the registers is. An SM starts four FMAs of a warp in a clock,
and its L1 serves one load of a warp:

    2 loads for each FMA: at most 1/2 FMA of 4 in a clock, an eighth of the roof

An FMA is a fused multiply-add, here of fp32 on the ordinary cores: no variant uses tensor cores.

## Why tiled gains little

Each number in shared memory is read 32 times there. Older GPUs, which did not cache such loads in
the L1, gained several times. Today the L1 does much of this by itself: it is the same SRAM as
shared memory, with the same 128 bytes a clock. What remains is in the table: no misses in the inner
loop, and four numbers of a in one load.

## What blocked does besides

- The next tile travels into registers while this one is used. Shared memory holds two tiles, so one
  barrier a tile suffices.
- The tile of a is stored transposed, so that a thread's rows are neighbours. Without padding
  (`--set pad=0`) a warp writes to 16 of the 32 banks, two threads to each in turn: a bank conflict.
  Four floats after each row move half of them to the other 16.
- About 128 registers a thread let a quarter of an SM's threads fit: enough, as 64 independent FMAs
  hide their latency.

## Where the bytes go

b is larger than the L2 and is read again for each row of blocks. ncu counts 21 times the compulsory
bytes in `naive`, 42 in `tiled` and 3 in `blocked`, whose blocks are 16 times as large. Even so DRAM
was busy for 11 % of the time at most (H200). An H200 gains 1.42x and 7.1x.

The guides advise to tile into shared memory. That is half of it: the other half are registers. Look
at them, and at loads beside FFMA in the machine code.
"""

import torch

from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario(
    topic="CUDA C++ kernels",
    needs=("cuda", "cupy"),
    roof="vector",
    clock="device",
    params={"m": 4096, "n": 4096, "k": 4096, "pad": 4},  # pad: a multiple of 4
    smoke={"m": 130, "n": 70, "k": 33},
    sweep={"n": (128, 512, 2048, 4096, 8192), "pad": (0, 4)},
    ladder=True,
    claim="bottleneck guide and Triton guide: tile operands into shared memory",
    terms=("tile", "gemm", "smem", "bank conflict"),
)
cuda = CudaSource(r"""
constexpr int TILE = 32, ROWS = 128, COLUMNS = 128, DEPTH = 8;

__global__ void __launch_bounds__(TILE * TILE) naive(const float* __restrict__ a, const float* __restrict__ b,
                                                     float* __restrict__ c, int m, int n, int k) {
    const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    if (row >= m || column >= n) return;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += a[(long long)row * k + i] * b[(long long)i * n + column];
    c[(long long)row * n + column] = sum;
}

__global__ void __launch_bounds__(TILE * TILE) tiled(const float* __restrict__ a, const float* __restrict__ b,
                                                     float* __restrict__ c, int m, int n, int k) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int start = 0; start < k; start += TILE) {
        left[y][x] = row < m && start + x < k ? a[(long long)row * k + start + x] : 0;
        right[y][x] = start + y < k && column < n ? b[(long long)(start + y) * n + column] : 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++) sum += left[y][i] * right[i][x];
        __syncthreads();
    }
    if (row < m && column < n) c[(long long)row * n + column] = sum;
}

// Four floats of a row, zeros beyond the matrix.
__device__ float4 four(const float* __restrict__ from, int row, int rows, int column, int columns, bool aligned) {
    float4 values = make_float4(0, 0, 0, 0);
    if (row >= rows || column >= columns) return values;
    const float* at = from + (long long)row * columns + column;
    if (aligned) return *reinterpret_cast<const float4*>(at);
    values.x = at[0];
    if (column + 1 < columns) values.y = at[1];
    if (column + 2 < columns) values.z = at[2];
    if (column + 3 < columns) values.w = at[3];
    return values;
}

__device__ void store(float* row, int column, int columns, bool aligned, float4 values) {
    if (aligned && column < columns) *reinterpret_cast<float4*>(row + column) = values;
    if (aligned) return;
    if (column < columns) row[column] = values.x;
    if (column + 1 < columns) row[column + 1] = values.y;
    if (column + 2 < columns) row[column + 2] = values.z;
    if (column + 3 < columns) row[column + 3] = values.w;
}

template <int PAD>
__global__ void __launch_bounds__(256, 2) blocked(const float* __restrict__ a, const float* __restrict__ b,
                                                  float* __restrict__ c, int m, int n, int k) {
    alignas(16) __shared__ float left[2][DEPTH][ROWS + PAD], right[2][DEPTH][COLUMNS];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    // Lanes i and i ^ 1 read the same of b, i and i ^ 2 the same of a: so half a warp's 16-byte loads take one pass.
    const int y = warp / 2 * 16 + ((lane & 1) | (lane >> 4 << 1)) * 4, x = warp % 2 * 32 + (lane >> 1 & 7) * 4;
    const int top = blockIdx.y * ROWS, side = blockIdx.x * COLUMNS;
    const int a_row = thread / 2, a_column = thread % 2 * 4, b_row = warp, b_column = lane * 4;
    const bool a_aligned = k % 4 == 0, b_aligned = n % 4 == 0;
    float sums[8][8] = {};
    float4 next_a = four(a, top + a_row, m, a_column, k, a_aligned);
    float4 next_b = four(b, b_row, k, side + b_column, n, b_aligned);
    for (int start = 0, now = 0; start < k; start += DEPTH, now ^= 1) {
        left[now][a_column][a_row] = next_a.x, left[now][a_column + 1][a_row] = next_a.y;
        left[now][a_column + 2][a_row] = next_a.z, left[now][a_column + 3][a_row] = next_a.w;
        *reinterpret_cast<float4*>(&right[now][b_row][b_column]) = next_b;
        __syncthreads();
        next_a = four(a, top + a_row, m, start + DEPTH + a_column, k, a_aligned);
        next_b = four(b, start + DEPTH + b_row, k, side + b_column, n, b_aligned);
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
            float down[8], across[8];
#pragma unroll
            for (int half = 0; half < 2; half++) {
                *reinterpret_cast<float4*>(down + 4 * half) =
                    *reinterpret_cast<const float4*>(&left[now][i][y + 64 * half]);
                *reinterpret_cast<float4*>(across + 4 * half) =
                    *reinterpret_cast<const float4*>(&right[now][i][x + 64 * half]);
            }
#pragma unroll
            for (int entry = 0; entry < 64; entry++)
                sums[entry / 8][entry % 8] += down[entry / 8] * across[entry % 8];
        }
    }
#pragma unroll
    for (int entry = 0; entry < 64; entry += 4) {
        const int row = top + y + entry / 8 % 4 + entry / 32 * 64, column = side + x + entry % 8 / 4 * 64;
        const float* sum = &sums[entry / 8][entry % 8];
        if (row < m) store(c + (long long)row * n, column, n, b_aligned, make_float4(sum[0], sum[1], sum[2], sum[3]));
    }
}
""")


@scenario.variant
def naive(lab, m, n, k):
    """One thread for each output, two loads from global memory for each FMA: the baseline."""
    return _matmul(lab, m, n, k, cuda.kernel("naive", threads=(32, 32)), 32)


@scenario.variant
def tiled(lab, m, n, k):
    """Tiles of 32 x 32 in shared memory in place of global memory: still two numbers from it for
    each FMA.
    """
    return _matmul(lab, m, n, k, cuda.kernel("tiled", threads=(32, 32)), 32)


@scenario.variant
def blocked(lab, m, n, k, pad):
    """8 x 8 outputs of a thread in registers, not one: four 16-byte loads from shared memory for 64
    FMAs.
    """
    return _matmul(lab, m, n, k, cuda.kernel(f"blocked<{pad}>", threads=256), 128)


@scenario.variant(against=None)
def cublas(lab, m, n, k):
    """torch.mm, which is cuBLAS on a GPU, with TF32 off: for scale, not compared."""
    return _matmul(lab, m, n, k, lambda _, a, b, c, *sizes: torch.mm(a, b, out=c), 128)


def _matmul(lab, m, n, k, multiply, tile):
    a, b, c = (
        torch.randn(rows, columns, device=lab.device) for rows, columns in ((m, k), (k, n), (m, n))
    )
    blocks, size = (-(-n // tile), -(-m // tile)), a.nbytes + b.nbytes + c.nbytes
    step = lambda: multiply(blocks, a, b, c, m, n, k)  # noqa: E731
    return Work(step, flops=2 * m * n * k, bytes=size, dtype="fp32", inputs=(a, b), output=c)
