"""Shared-memory prefetch: data that is used once still comes from memory once.

Every variant computes y = 2 x + 1, element by element, and moves the same bytes: each number is
read once and written once (ncu counts the same bytes for all). Shared memory is faster than device
memory, but that does not make the way to it any shorter: what is used once still comes from device
memory once.

`direct` loads 16 bytes into registers, computes, and stores. It reaches 94 % of the memory's roof
(H200, measured here), so little is left to gain, whatever the method. `staged` first puts the 16
bytes into shared memory, waits at a barrier, and reads them from there, as code does whose threads
share a tile. It adds a store to and a load from shared memory and two barriers to each 16 bytes,
and saves none. Here the result does not even need the barriers, since each thread reads only what
it wrote itself: they are part of the pattern, and of its price. The quick-start guide reports 1.24x
for such a version. Measured here on an H200: 1.04x. That is not traffic, since the bytes are the
same: in the solo runs its SMs had work for 96 % of the time, those of `direct` for 88 %.

`async_copy` has the hardware copy from device memory to shared memory past the registers (cp.async,
from compute capability 8.0 on), one tile ahead of the one in use. That does something that `staged`
does not: twice as many bytes are under way. It gains nothing here (0.997x against `direct`), since
enough are under way without it. Half of an H200's 4.8 TB/s are loads, and memory answers after
nearly a microsecond under load, so about 2 MB of loads have to be under way at any time, some 16
KiB for each SM. With 8 blocks of 256 threads `direct` has 32 KiB by itself. With one block it would
have 4 KiB and be limited by latency, and two tiles under way should be up to twice as fast as one:
`--sweep blocks_per_sm` shows it. More threads, or several loads in each thread, do the same with
less code (the compiler unrolls such loops by itself; `#pragma unroll 1` prevents it here, so that
`direct` has one load at a time, too).

So staging pays where a tile is read more than once (`shared_memory_tiling`), or in another order
than it was loaded. Prefetching pays where there are too few threads to hide latency, as in a matmul
whose threads need many registers. What to look at: the bandwidth, and in the machine code LDGSTS
(cp.async) beside LDG (load), STS and LDS (to and from shared memory).
"""

import torch

from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario(
    topic="CUDA C++ kernels",
    needs=("cuda", "cupy"),
    roof="device memory",
    clock="device",
    params={"n": 128 * 2**20, "block": 256, "blocks_per_sm": 8},
    smoke={"n": 100_003},
    sweep={"blocks_per_sm": (1, 2, 4, 8), "block": (64, 128, 256)},
    ladder=True,
    claim="quick-start guide: 1.24x",
    no_effect_reason="each number is used once, so shared memory saves no traffic",
    terms=("cp.async", "smem"),
)
cuda = CudaSource(r"""
__device__ float y_of(float x) { return 2 * x + 1; }

__device__ float4 y_of(float4 x) { return make_float4(y_of(x.x), y_of(x.y), y_of(x.z), y_of(x.w)); }

// What does not fill 16 bytes.
__device__ void tail(const float* __restrict__ in, float* __restrict__ out, long long n) {
    if (blockIdx.x == 0 && threadIdx.x < n % 4) out[n - 1 - threadIdx.x] = y_of(in[n - 1 - threadIdx.x]);
}

__device__ void start_copy(float4* to, const float4* from) {
#ifdef __CUDA_ARCH__
    const unsigned address = __cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
#else
    *to = *from;
#endif
}

__device__ void end_group() {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Until all groups of this thread's copies but the last are there.
__device__ void wait_for_all_but_one() {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
}

__global__ void direct(const float* __restrict__ in, float* __restrict__ out, long long n) {
    const float4* x = reinterpret_cast<const float4*>(in);
    float4* y = reinterpret_cast<float4*>(out);
    const long long step = (long long)gridDim.x * blockDim.x;
#pragma unroll 1
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += step) y[i] = y_of(x[i]);
    tail(in, out, n);
}

template <int BLOCK>
__global__ void staged(const float* __restrict__ in, float* __restrict__ out, long long n) {
    __shared__ float4 tile[BLOCK];
    const float4* x = reinterpret_cast<const float4*>(in);
    float4* y = reinterpret_cast<float4*>(out);
    const long long step = (long long)gridDim.x * BLOCK;
#pragma unroll 1
    for (long long first = (long long)blockIdx.x * BLOCK; first < n / 4; first += step) {
        const long long i = first + threadIdx.x;
        if (i < n / 4) tile[threadIdx.x] = x[i];
        __syncthreads();
        if (i < n / 4) y[i] = y_of(tile[threadIdx.x]);
        __syncthreads();
    }
    tail(in, out, n);
}

template <int BLOCK>
__global__ void async_copy(const float* __restrict__ in, float* __restrict__ out, long long n) {
    __shared__ float4 tiles[2][BLOCK];
    const float4* x = reinterpret_cast<const float4*>(in);
    float4* y = reinterpret_cast<float4*>(out);
    const long long step = (long long)gridDim.x * BLOCK;
    long long i = (long long)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n / 4) start_copy(&tiles[0][threadIdx.x], x + i);
    end_group();
#pragma unroll 1
    for (int now = 0; i - threadIdx.x < n / 4; i += step, now ^= 1) {
        if (i + step < n / 4) start_copy(&tiles[now ^ 1][threadIdx.x], x + i + step);
        end_group();
        wait_for_all_but_one();
        __syncthreads();
        if (i < n / 4) y[i] = y_of(tiles[now][threadIdx.x]);
        __syncthreads();
    }
    tail(in, out, n);
}
""")


@scenario.variant
def direct(lab, n, block, blocks_per_sm):
    """From device memory to registers and back."""
    return _work(lab, n, block, blocks_per_sm, cuda.kernel("direct", threads=block))


@scenario.variant
def staged(lab, n, block, blocks_per_sm):
    """Through a tile in shared memory, with a barrier before it is read and before it is
    overwritten.
    """
    return _work(lab, n, block, blocks_per_sm, cuda.kernel(f"staged<{block}>", threads=block))


@scenario.variant
def async_copy(lab, n, block, blocks_per_sm):
    """Through two tiles: the next one is copied by cp.async while this one is used."""
    return _work(lab, n, block, blocks_per_sm, cuda.kernel(f"async_copy<{block}>", threads=block))


def _work(lab, n, block, blocks_per_sm, kernel):
    x = torch.randn(n, device=lab.device)
    y = torch.empty_like(x)
    blocks = min((lab.sms or 2) * blocks_per_sm, -(-n // (4 * block)))
    return Work(
        lambda: kernel(blocks, x, y, n),
        bytes=x.nbytes + y.nbytes,
        flops=2 * n,
        dtype="fp32",
        inputs=x,
        output=y,
    )
