"""Shared-memory prefetch: data that is used once still comes from memory once.

**In short:** shared memory saves traffic only for what is read from it more than once; for the rest it is a detour.

```text
each 16 bytes, from device memory and back to it

direct      memory ─▶ registers ────────────────────▶ memory

staged      memory ─▶ registers ─▶ shared ─▶ registers ─▶ memory
                                 two barriers

async_copy  memory ──────────────▶ shared ─▶ registers ─▶ memory
            memory ──────────────▶ shared   the next tile, meanwhile
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `direct` | 16 bytes into registers, computed, stored | baseline, 275 us, 94 % of the memory's roof | little is left to gain |
| `staged` | through a tile in shared memory | 1.04x, 97 % | the same bytes; in solo runs its SMs had work for 96 % of the time, those of `direct` for 88 % |
| `async_copy` | copied to shared memory by cp.async, one tile ahead | *same*, 0.997x | twice the bytes under way, but enough are under way without it |

## Why no traffic is saved

Every variant computes y = 2 x + 1, and reads and writes each number once. ncu counts the same bytes
for all. Shared memory is memory on the chip for the threads of a block. It is faster than device
memory, but what is used once still comes from device memory once.

`staged` adds to each 16 bytes a store, a load and two barriers. Here a thread reads only what it
wrote itself, so the barriers are not needed: they are part of the pattern and of its price.

## What cp.async does

The hardware copies from device memory to shared memory past the registers (from compute capability
8.0 on). The next tile is under way while this one is used. That helps if too few loads are under
way. On an H200, with half of the traffic loads and nearly a microsecond of latency under load:

    2.4 TB/s x nearly 1 us = about 2 MB of loads, some 16 KiB for each SM

With 8 blocks of 256 threads `direct` has 32 KiB by itself.

## Where it helps

- Staging: where a tile is read more than once (`shared_memory_tiling`), or in another order.
- Prefetching: where too few threads hide latency, as in a matmul whose threads need many registers.

With one block for each SM `direct` has only 4 KiB: there two tiles under way should be up to twice
as fast as one (`--sweep blocks_per_sm`). More threads, or several loads in each, do the same with
less code. The compiler unrolls such loops by itself. Here `#pragma unroll 1` prevents it, so
`direct` has one load at a time, too.

## What the source says

The quick-start guide reports 1.24x for a version like `staged`. On an H200 it is 1.04x, and not by
traffic. Run alone, `direct` took 4.1 % less time than in turn with the others, about as much. Look
at the bandwidth, and at LDGSTS (cp.async) beside LDG, STS and LDS in the machine code.
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
    """From device memory to registers and back: the baseline, without shared memory."""
    return _work(lab, n, block, blocks_per_sm, cuda.kernel("direct", threads=block))


@scenario.variant
def staged(lab, n, block, blocks_per_sm):
    """Unlike `direct`, through a tile in shared memory, with a barrier before it is read and before
    it is overwritten.
    """
    return _work(lab, n, block, blocks_per_sm, cuda.kernel(f"staged<{block}>", threads=block))


@scenario.variant
def async_copy(lab, n, block, blocks_per_sm):
    """Through two tiles in place of one: the next one is copied by cp.async meanwhile."""
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
