"""Coalescing: a warp's request needs few sectors where its threads read neighbours.

**In short:** memory moves in sectors of 32 bytes, so let neighbouring threads take neighbouring elements.

```text
one request of 32 lanes        │ ends a sector, 8 floats

coalesced ████████│████████│████████│████████   4 sectors
stride_2  █·█·█·█·│█·█·█·█·│█·█·█·█·│ ...       8 sectors
stride_4  █···█···│█···█···│█···█···│ ...      16 sectors
stride_8  █·······│█·······│█·······│ ...      32, of  8 lines
stride_32 █·······│········│········│ ...      32, of 32 lines

          █: taken by a lane   ·: taken by another request
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `stride_32` | lanes 128 bytes apart | 6.2 times `coalesced` | 32 sectors, and a tag look-up for each of 32 cache lines |
| `stride_8` | lanes 32 bytes apart | 3.0 times `coalesced` | 32 sectors: each lane moves 32 bytes for its 4 |
| `stride_4` | lanes 16 bytes apart | 1.8 times `coalesced` | 16 sectors |
| `stride_2` | every second float | 1.1 times `coalesced` | 8 sectors |
| `coalesced` | consecutive floats | 0.40 ms, 63 % of the memory's roof | 4 sectors; but a thread has only one load of 4 bytes under way |
| `random_order` | in the order of a table of random indices | 6.7 times `coalesced` | about 32 sectors, 4 bytes more for the index, and a wait for it |

## What a request moves

A load or store of a warp (32 threads that run together, its lanes) is one request. The hardware
splits it into sectors, aligned pieces of 32 bytes. A sector moves between the L2 cache and the SM
as a whole. A cache line has 128 bytes, 4 sectors.

## Why the memory sees the same bytes

All variants do `out[i] = factor * in[i]` for the same i; only the order differs. Thread t of a tile
of 8192 x STRIDE elements takes element

    t % 8192 * STRIDE + t / 8192

Other blocks, most of them on other SMs, use the rest of its sectors. So no L1 can merge the
requests, but the L2 can: a tile has 1 MiB at most. Memory moves 8 bytes an element for all (ncu
counts the same within 1 %).

## What grows instead

The traffic between L2 and SMs grows, which declared bytes do not show: profile sectors per request.
At a stride of 8, 64 bytes an element move at 7.1 TB/s (H200). `cache_footprint` reads at 8.4 TB/s.
From 8 to 32 the sectors stay the same. Four times the cache lines double the time.

`random_order` permutes windows of `window` elements, 4 MiB by default. With windows beyond the L2
(`--sweep window`) memory should move up to 68 bytes an element; 12 are declared.

## What the sources compare

The kernels of the performance basics and the Triton guide differ 32x in their work. So the ratio of
their times is not that of coalescing. For more bytes under way see `vectorized_loads`.
"""

import torch

from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario(
    topic="CUDA C++ kernels",
    needs=("cuda", "cupy"),
    roof="device memory",
    clock="device",
    params={"n": 128 * 2**20, "block": 256, "window": 2**20},
    smoke={"n": 300_001, "window": 2**12},
    sweep={"window": (2**16, 2**20, 2**22, 2**24, 2**27), "block": (64, 256, 1024)},
    claim=(
        "performance basics and Triton guide: coalesced access is faster, measured on kernels "
        "whose work differed 32x"
    ),
    ladder=True,
    terms=("sectors", "strided access", "warp", "memory transactions"),
)
FACTOR = 1.7
cuda = CudaSource(r"""
// Larger than a block, so that a block never uses two elements of a sector: its SM's L1 would merge them.
constexpr unsigned long long ROWS = 8192;

template <int STRIDE>
__device__ unsigned long long element(unsigned long long t, unsigned long long n) {
    constexpr unsigned long long TILE = ROWS * STRIDE;
    const unsigned long long begin = t / TILE * TILE, place = t % TILE;
    if (begin + TILE > n) return t;  // the last, incomplete tile stays in order
    return begin + place % ROWS * STRIDE + place / ROWS;
}

template <int STRIDE>
__global__ void scale(const float* __restrict__ in, float* __restrict__ out, float factor, long long n) {
    const unsigned long long t = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    const unsigned long long i = element<STRIDE>(t, n);
    out[i] = factor * in[i];
}

__global__ void scale_at(const int* __restrict__ index, const float* __restrict__ in, float* __restrict__ out,
                         float factor, long long n) {
    const long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    const int i = index[t];
    out[i] = factor * in[i];
}
""")


@scenario.variant
def stride_32(lab, n, block):
    """Lanes 128 bytes apart: 32 sectors in 32 cache lines for each request."""
    return _scaled(lab, n, block, cuda.kernel("scale<32>", threads=block))


@scenario.variant
def stride_8(lab, n, block):
    """Lanes 32 bytes apart: 32 sectors in 8 cache lines."""
    return _scaled(lab, n, block, cuda.kernel("scale<8>", threads=block))


@scenario.variant
def stride_4(lab, n, block):
    """Lanes 16 bytes apart: 16 sectors."""
    return _scaled(lab, n, block, cuda.kernel("scale<4>", threads=block))


@scenario.variant
def stride_2(lab, n, block):
    """Every second float: 8 sectors."""
    return _scaled(lab, n, block, cuda.kernel("scale<2>", threads=block))


@scenario.variant
def coalesced(lab, n, block):
    """Consecutive floats: 4 sectors, all of them used."""
    return _scaled(lab, n, block, cuda.kernel("scale<1>", threads=block))


@scenario.variant(against="coalesced")
def random_order(lab, n, block, window):
    """In the order of a table of random indices: about 32 sectors, and the table is read too."""
    if n >= 2**31:
        lab.skip("its indices have 32 bits: choose n below 2^31")
    kernel = cuda.kernel("scale_at", threads=block)
    data, out = torch.rand(n, device=lab.device), torch.empty(n, device=lab.device)
    index = torch.arange(0, n, window, device=lab.device)[:, None] + torch.randperm(
        window, device=lab.device
    )
    index = index[index < n].int()  # one permutation for all windows, cut off in the last
    return Work(
        lambda: _launched(kernel, n, block, out, index, data, out, FACTOR, n),
        bytes=12 * n,
        flops=n,
        dtype="fp32",
        inputs=data,  # the order of its elements is this variant's own
    )


def _scaled(lab, n, block, kernel):
    data, out = torch.rand(n, device=lab.device), torch.empty(n, device=lab.device)
    return Work(
        lambda: _launched(kernel, n, block, out, data, out, FACTOR, n),
        bytes=8 * n,
        flops=n,
        dtype="fp32",
        inputs=data,
    )


def _launched(kernel, n, block, output, *arguments):
    kernel(-(-n // block), *arguments)
    return output
