"""Launch bounds: they trade registers for occupancy, and a cap that is too low spills.

Each thread follows one signal through `samples` samples, and keeps `scales` leaky sums of it, s = d
s + x, each with a decay d of its own. All sums and all decays are wanted in every pass of the loop:
about twice `scales` registers, 84 with 36 scales. An SM has 65,536 registers. At 88 for each
thread, as they are handed out in eights, two blocks of 256 threads fit: a quarter of the 2,048
threads that an SM can hold. Each thread has one load in flight, so the kernel waits for memory, and
more threads wait for more loads at a time.

`__launch_bounds__(256)` promises blocks of at most 256 threads. That is needed where a block would
not fit otherwise: 256 threads may have 255 registers each, 1,024 threads only 64. Here nothing was
in the way, and for an H200 the compiler makes the same code: 1.00x. (For compute capability 8.6 and
8.9 it takes 80 registers in place of 83: three blocks fit.)

`__launch_bounds__(256, 4)` demands that four blocks fit, hence at most 64 registers. Occupancy
doubles. The compiler finds room elsewhere, in the uniform registers that a warp has beside those of
its threads, and spills a few values to local memory, which is memory of the thread, cached in L1.
This is the rung that gains: 1.65x (H200, measured here).

`__launch_bounds__(256, 8)` demands eight blocks: all 2,048 threads, and at most 32 registers where
36 sums alone need more. On an H200 each sample then takes 26 loads and 22 stores of local memory
beside its 36 multiply-adds. What the L1 does not hold goes to L2 and memory: 3.4 times the declared
bytes (ncu). Occupancy is full, and the time 3.3 times that of no bounds at all, 5.5 times that of
four blocks (H200). On an SM of 1,536 threads (compute capability 8.6, 8.9, 12.0) eight blocks of
256 cannot be resident at all, and the compiler ignores the number. So the same line of the
quick-start guide is a large spill on one GPU and nothing on another.

Look at registers, spills and occupancy, which are known without running anything, and then at the
time. The number to demand is the largest that spills little, and it depends on the kernel: with 12
scales (`--sweep scales`) 32 registers spill hardly anything. `--maxrregcount` sets one limit for
all kernels of a file.
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
    terms=("registers", "spills", "maxrregcount"),
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
    """(256): a promise about the block, which leaves up to 255 registers."""
    return _sums(lab, n, samples, scales, cuda.kernel(f"bounded<{scales}>", threads=256))


@scenario.variant
def four_blocks(lab, n, samples, scales):
    """(256, 4): at most 64 registers, so that four blocks fit an SM."""
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
