"""Coalescing: a warp's request needs few sectors where its threads read neighbours.

A load or store of a warp (32 threads that run together, its lanes) is one request. The hardware
splits it into sectors, aligned pieces of 32 bytes, and a sector moves between the L2 cache and the
SM as a whole, however little of it is wanted. Where 32 lanes take 32 consecutive floats, that is 4
sectors. With a stride of 2 it is 8, with 4 it is 16, and from a stride of 8 on it is 32: each lane
moves 32 bytes for its 4. From there on only the number of cache lines grows (128 bytes, 4 sectors),
from 8 at a stride of 8 to 32 at a stride of 32, and each line needs a tag look-up of its own in the
L1.

All variants do `out[i] = factor * in[i]` for the same elements i. Only the order in which threads
take them differs. In tiles of 8192 x STRIDE elements, thread t of a tile takes its element t % 8192
* STRIDE + t / 8192: all sectors are used in full, but by different blocks at about the same time,
most of them on different SMs. So no L1 can merge their requests. The L2 can: a tile has 1 MiB at
most, and each sector comes from memory and goes back to it once. The bytes of memory are therefore
equal, 8 an element (ncu counts the same within 1 %). What grows is the traffic between L2 and SMs,
which does not show in the declared bytes: in a profiler look at sectors per request.

Measured here on an H200: `coalesced` takes 0.40 ms, and strides of 2, 4, 8 and 32 take 1.1, 1.8,
3.0 and 6.2 times as long. At a stride of 8 the L2 and the SMs exchange 64 bytes an element at 7.1
TB/s, not far from the 8.4 TB/s of reads that `cache_footprint` reaches. From 8 to 32 the sectors
are the same and the time doubles once more, with four times the cache lines. `coalesced` itself
comes to 63 % of the memory's roof: every sector is used, but a thread has only one load of 4 bytes
under way (see `vectorized_loads`).

`random_order` takes elements in the order of a table of indices, a random permutation in windows of
`window` elements, 4 MiB by default. That is about 32 sectors a request as well, 4 more bytes an
element for the index, which are declared, and a load that waits for the index: 6.7x as long as
`coalesced` (H200). With windows beyond the L2 (`--sweep window`) memory should move whole sectors
for each element, too: up to 68 bytes in place of the 12 declared.

The kernels that the performance basics and the Triton guide compare differ in the amount of work by
a factor of 32, so the ratio of their times is not that of coalescing.
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
        inputs=(data, index),
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
