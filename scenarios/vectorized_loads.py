"""Vectorized loads: 16 bytes in one instruction keep the memory busier than 4.

**In short:** memory is busy only if enough bytes are under way, and a 16-byte load has four times those of a 4-byte load.

```text
loads under way if an H200 is full        █ 0.27 MB   │ 1.7 MB

one_float    ████  │                      too few
one_float2   ██████│██                    just enough
one_float4   ██████│██████████            more than enough
four_float4  ██████│██████████ ... four times as many a thread
misaligned   ██████│██████████            as one_float4

             │ what the memory needs: bandwidth x latency
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `one_float` | 4 bytes for each thread | baseline, 403 us, 2.67 TB/s, 63 % of the roof | too few bytes under way |
| `one_float2` | 8 bytes for each thread | 1.43x, 3.82 TB/s, 90 % | twice the bytes under way |
| `one_float4` | 16 bytes for each thread | 1.59x, 4.24 TB/s, 100 % | the memory is saturated |
| `four_float4` | four loads of 16 bytes before the first store | 1.51x; 0.95x of `one_float4` | nothing is left to gain |
| `misaligned` | `one_float4` from a place between multiples of 16 bytes | 1.56x; 0.98x of `one_float4` | 17 sectors for 512 bytes, not 16; a head of single floats |
| `torch_copy` | the driver's copy, for scale | 4.20 TB/s, 99 % | saturated, too |

## Little's law

A warp's load of one float a lane asks for 128 bytes, of a float4 (four floats in one instruction)
for 512. All bytes of the sectors are used in either case (`coalescing`). What changes is how many
bytes are under way. Memory is saturated when they are

    bandwidth x latency = 2.4 TB/s of reads x some 700 ns = about 1.7 MB

A copy reads half of an H200's 4.8 TB/s. A full H200 has 270,000 threads: with a float each, 1.1 MB
at most. Threads that copy 4 bytes are also soon done: in the solo run only 69 % of their places
were taken.

## Where it does not help

Where the memory is saturated: a card with 0.5 TB/s should be near its roof with single floats. The
bytes under way decide, not the number of threads. So few threads with long loads can do what many
with short ones do (`occupancy`).

## Alignment

A float4 has to lie at a multiple of 16 bytes, or the kernel fails with "misaligned address".
Tensors begin there; slices need not: `x[1:]` begins 4 bytes further. `misaligned` copies a head of
up to three floats one by one, so that the rest is aligned, and a tail of fewer than four. Source
and destination must be equally misaligned. Otherwise one of the two needs smaller pieces.

The compiler does not merge floats into 16 bytes by itself: it does not know how a pointer is
aligned. Look for LDG.E, LDG.E.64 and LDG.E.128.

## What the sources say

122 -> 242 GB/s (performance basics) are rates of a device, or of a size, where latency was the
limit. The quick-start guide has 1.28x.
"""

import torch

from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario(
    topic="CUDA C++ kernels",
    needs=("cuda", "cupy"),
    roof="device memory",
    clock="device",
    params={"n": 128 * 2**20, "block": 256, "offset": 1},
    smoke={"n": 100_003},
    sweep={"block": (64, 128, 256, 512, 1024), "offset": (0, 1, 2, 4)},
    claim="performance basics: 122 -> 242 GB/s; quick-start guide: 1.28x",
    no_effect_reason="the memory is already saturated",
    ladder=True,
    terms=("float4", "ld.128", "bytes in flight"),
)
cuda = CudaSource(r"""
template <typename Vector>
__device__ void copy_one(const float* in, float* out, long long first, long long n) {
    constexpr int WIDTH = sizeof(Vector) / sizeof(float);
    if (first + WIDTH <= n) {
        *reinterpret_cast<Vector*>(out + first) = *reinterpret_cast<const Vector*>(in + first);
    } else {
#pragma unroll 1
        for (long long i = first; i < n; i++) out[i] = in[i];
    }
}

template <typename Vector>
__global__ void copy(const float* __restrict__ in, float* __restrict__ out, long long n) {
    const long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    copy_one<Vector>(in, out, t * (sizeof(Vector) / sizeof(float)), n);
}

// Each load of a warp is coalesced: the vectors of one thread are a block apart.
template <int COUNT>
__global__ void copy_several(const float* __restrict__ in, float* __restrict__ out, long long n) {
    const long long begin = (long long)blockIdx.x * blockDim.x * COUNT + threadIdx.x;
    if (4 * (begin + (COUNT - 1) * blockDim.x + 1) <= n) {
        const float4* from = reinterpret_cast<const float4*>(in) + begin;
        float4* to = reinterpret_cast<float4*>(out) + begin;
        float4 held[COUNT];
#pragma unroll
        for (int k = 0; k < COUNT; k++) held[k] = from[k * blockDim.x];
#pragma unroll
        for (int k = 0; k < COUNT; k++) to[k * blockDim.x] = held[k];
    } else {
#pragma unroll 1
        for (int k = 0; k < COUNT; k++) copy_one<float4>(in, out, 4 * (begin + k * blockDim.x), n);
    }
}

// Both begin at the same place between two multiples of 16 bytes.
__global__ void copy_misaligned(const float* __restrict__ in, float* __restrict__ out, long long n) {
    const long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long beyond = reinterpret_cast<unsigned long long>(in) / sizeof(float) % 4;
    const long long head = min((4 - beyond) % 4, n);
    if (t < head) out[t] = in[t];
    copy_one<float4>(in + head, out + head, 4 * t, n - head);
}
""")


@scenario.variant
def one_float(lab, n, block):
    """4 bytes for each thread: the baseline."""
    return _copied(lab, n, cuda.kernel("copy<float>", threads=block), block)


@scenario.variant
def one_float2(lab, n, block):
    """8 bytes for each thread in one load, not 4."""
    return _copied(lab, n, cuda.kernel("copy<float2>", threads=block), 2 * block)


@scenario.variant
def one_float4(lab, n, block):
    """16 bytes for each thread in one load, not 8: the longest load before Blackwell."""
    return _copied(lab, n, cuda.kernel("copy<float4>", threads=block), 4 * block)


@scenario.variant
def four_float4(lab, n, block):
    """Four loads of 16 bytes for each thread, not one, all under way before the first store."""
    return _copied(lab, n, cuda.kernel("copy_several<4>", threads=block), 16 * block)


@scenario.variant(against="one_float4")
def misaligned(lab, n, block, offset):
    """One float4 for each thread, as in `one_float4`, from a misaligned place on: a head and a tail
    of single floats.
    """
    return _copied(lab, n, cuda.kernel("copy_misaligned", threads=block), 4 * block, offset)


@scenario.variant(against=None)
def torch_copy(lab, n):
    """The driver's copy: for scale, not compared."""
    data, out = torch.rand(n, device=lab.device), torch.empty(n, device=lab.device)
    return Work(lambda: out.copy_(data), bytes=8 * n, inputs=data)


def _copied(lab, n, kernel, per_block, offset=0):
    data, out = (torch.empty(offset + n, device=lab.device)[offset:] for _ in range(2))
    data.copy_(torch.rand(n, device=lab.device))

    def step():
        kernel(-(-n // per_block), data, out, n)
        return out

    return Work(step, bytes=8 * n, inputs=data)
