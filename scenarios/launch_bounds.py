"""Launch bounds: they trade registers for occupancy, and a cap that is too low spills.

**In short:** fewer registers a thread let more threads share an SM, until values no longer fit and go to memory.

```text
one SM: 65,536 registers, a cell is 2,048; a block has 256 threads

registers a thread                             blocks, threads
88 (84)     │███████████▒▒▒▒▒▒▒▒▒▒▒··········│ 2,   512 of 2,048
64          │████████▒▒▒▒▒▒▒▒████████▒▒▒▒▒▒▒▒│ 4, 1,024
32          │████▒▒▒▒████▒▒▒▒████▒▒▒▒████▒▒▒▒│ 8, 2,048

            █▒ blocks in turn   · free, too little for a third
            88 (84): 84 are wanted, and handed out in eights
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `no_bounds` | the compiler takes what it wants: 84 registers | baseline, 412 us, occupancy 25 % | each thread has one load under way, so the kernel waits for memory |
| `threads_256` | `(256)`: a promise about the block | *same*, 1.00x | 255 registers were allowed already, so the code is the same |
| `four_blocks` | `(256, 4)`: at most 64 registers | 1.65x, occupancy 50 %, 56 bytes spilled | twice the threads wait at a time; few values are spilled |
| `eight_blocks` | `(256, 8)`: at most 32 registers | 0.30x, occupancy 100 %, 412 bytes spilled | 36 sums do not fit: 26 loads and 22 stores of local memory for each sample |

## What the kernel needs

Each thread follows one signal and keeps `scales` (36) leaky sums, each with its own decay d:

    s = d * s + x
    registers: about 2 * scales

All blocks on an SM share its 65,536 registers. The more each thread takes, the lower is the
occupancy: the share of the SM's places for threads that are taken.

## What each number says

In `__launch_bounds__(256, 4)` the first number promises the size of a block. It matters for large
ones: 1,024 threads may have only 64 registers each. For compute capability 8.6 and 8.9 the compiler
takes 80 registers for 83, so that three blocks fit.

The second number demands that so many blocks fit. The compiler then finds room in the uniform
registers, which a warp has for all its threads. It spills the rest to local memory: memory of the
thread, cached in L1.

## Where the cap is too low

Full occupancy is no help if each sample costs 48 accesses beside 36 multiply-adds. What the L1 does
not hold goes on to L2 and memory: 3.4 times the declared bytes (H200, ncu). `eight_blocks` takes
5.5 times as long as `four_blocks`.

## What the source says

The quick-start guide shows `(256, 8)`. An SM of 1,536 threads (compute capability 8.6, 8.9, 12.0)
cannot hold eight blocks of 256, and the compiler ignores the number. So one line is a large spill
on one GPU, and nothing on another.

Demand the largest number that spills little. It depends on the kernel: with 12 scales
(`--sweep scales`) 32 registers spill hardly anything. Look at registers, spills and occupancy
first: they are known before anything runs. `--maxrregcount` sets one limit for all kernels of a
file.
"""

import torch

from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario(
    topic="CUDA C++ kernels",
    needs=("cuda", "cupy"),
    roof="latency",
    clock="device",
    params={"n": 2**20, "samples": 64, "scales": 36},
    smoke={"n": 2**12, "samples": 4, "scales": 36},
    sweep={"scales": (12, 24, 36, 48)},
    ladder=True,
    claim="quick-start guide: __launch_bounds__(256, 8)",
    no_effect_reason=(
        "a promise of 256 threads changes nothing where the compiler wanted fewer than 256 "
        "registers"
    ),
    terms=("maxrregcount", "local memory", "ptxas", "__launch_bounds__"),
)
cuda = CudaSource(r"""
template <int SCALES>
__device__ __forceinline__ void sums(const float* __restrict__ in, const float* __restrict__ decays,
                                     float* __restrict__ out, long long n, int samples) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float decay[SCALES], sum[SCALES];
#pragma unroll
    for (int k = 0; k < SCALES; ++k) {
        decay[k] = decays[k];
        sum[k] = 0.0f;
    }
#pragma unroll 1
    for (int t = 0; t < samples; ++t) {
        const float x = in[t * n + i];
#pragma unroll
        for (int k = 0; k < SCALES; ++k) sum[k] = fmaf(decay[k], sum[k], x);
    }
    float energy = 0.0f;
#pragma unroll
    for (int k = 0; k < SCALES; ++k) energy = fmaf(sum[k], sum[k], energy);
    out[i] = energy;
}

template <int SCALES> __global__ void unbounded(
    const float* in, const float* decays, float* out, long long n, int samples) {
    sums<SCALES>(in, decays, out, n, samples);
}

template <int SCALES> __global__ void __launch_bounds__(256) bounded(
    const float* in, const float* decays, float* out, long long n, int samples) {
    sums<SCALES>(in, decays, out, n, samples);
}

template <int SCALES, int BLOCKS> __global__ void __launch_bounds__(256, BLOCKS) capped(
    const float* in, const float* decays, float* out, long long n, int samples) {
    sums<SCALES>(in, decays, out, n, samples);
}
""")


@scenario.variant
def no_bounds(lab, n, samples, scales):
    """The compiler takes as many registers as it wants."""
    return _sums(lab, n, samples, scales, cuda.kernel(f"unbounded<{scales}>", threads=256))


@scenario.variant
def threads_256(lab, n, samples, scales):
    """(256): a promise about the block, which leaves up to 255 registers, as `no_bounds` does."""
    return _sums(lab, n, samples, scales, cuda.kernel(f"bounded<{scales}>", threads=256))


@scenario.variant
def four_blocks(lab, n, samples, scales):
    """(256, 4): at most 64 registers in place of 84, so that four blocks fit an SM, not two."""
    return _sums(lab, n, samples, scales, cuda.kernel(f"capped<{scales}, 4>", threads=256))


@scenario.variant
def eight_blocks(lab, n, samples, scales):
    """(256, 8): at most 32 registers on an SM of 2,048 threads, and spills."""
    return _sums(lab, n, samples, scales, cuda.kernel(f"capped<{scales}, 8>", threads=256))


def _sums(lab, n, samples, scales, kernel):
    data = torch.randn(samples, n, device=lab.device)
    decays = 0.5 + 0.49 * torch.rand(scales, device=lab.device)
    out = torch.empty(n, device=lab.device)

    def step():
        kernel((n + 255) // 256, data, decays, out, n, samples)
        return out

    flops = 2 * scales * (samples + 1) * n
    return Work(
        step, bytes=data.nbytes + out.nbytes, flops=flops, dtype="fp32", inputs=(data, decays)
    )
