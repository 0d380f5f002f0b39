"""CUDA C++ for what torch has no operation for: chains of fused multiply-adds, and reads that end in the L2 cache.

Compiled by NVRTC through CuPy, where that is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import util
from typing import Any

import torch

from gpulab.protocol.device import Device
from gpulab.protocol.finding import Finding, finding

THREADS, BLOCKS_PER_SM = 256, 8
CHAINS = 8
"""Independent accumulators per thread: an FMA's latency is 4 clocks, and an SM must not wait for it."""
_ITERATIONS = 4096
_L2_BYTES_PER_LAUNCH = 4 << 30  # so that a launch's own microseconds do not show

SOURCE = r"""
template <typename T> __device__ void chain(T* out, T a, T b, int iterations) {
    T x[8];
    #pragma unroll
    for (int k = 0; k < 8; ++k) x[k] = T(threadIdx.x + k);
    #pragma unroll 8
    for (int i = 0; i < iterations; ++i) {
        #pragma unroll
        for (int k = 0; k < 8; ++k) x[k] = fma(x[k], a, b);
    }
    T sum = 0;
    #pragma unroll
    for (int k = 0; k < 8; ++k) sum += x[k];
    if (sum == T(-1)) *out = sum;  // never: it keeps the compiler from leaving the loop out
}
extern "C" __global__ void fma_fp32(float* out, float a, float b, int n) { chain<float>(out, a, b, n); }
extern "C" __global__ void fma_fp64(double* out, double a, double b, int n) { chain<double>(out, a, b, n); }

extern "C" __global__ void read_l2(const uint4* data, unsigned int* out, long long count, int passes) {
    uint4 sum = make_uint4(0, 0, 0, 0);
    const long long stride = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (int pass = 0; pass < passes; ++pass) {
        #pragma unroll 8
        for (long long i = first; i < count; i += stride) {
            const uint4 value = __ldcg(data + i);  // past L1
            sum.x ^= value.x; sum.y ^= value.y; sum.z ^= value.z; sum.w ^= value.w;
        }
        // Another pass may not be folded into this one.
        asm volatile("" : "+r"(sum.x), "+r"(sum.y), "+r"(sum.z), "+r"(sum.w) :: "memory");
    }
    if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x9e3779b9u) *out = sum.x;
}
"""


@dataclass(frozen=True)
class Kernel:
    """A step that launches it once, and what that does: FLOPs or bytes."""

    step: Callable[[], Any]
    amount: int
    method: Finding


def available() -> bool:
    return util.find_spec("cupy") is not None


def fma_chain(device: torch.device, info: Device, dtype: str) -> Kernel:
    """Fused multiply-adds that need nothing but registers, on all SMs."""
    import numpy as np

    scalar, tensor_dtype = (np.float32, torch.float32) if dtype == "fp32" else (np.float64, torch.float64)
    kernel, out = _compiled(f"fma_{dtype}"), torch.zeros(1, dtype=tensor_dtype, device=device)
    blocks = info.sms * BLOCKS_PER_SM
    iterations = _ITERATIONS if dtype == "fp32" else _ITERATIONS // 8  # cards have few fp64 units
    arguments = (out.data_ptr(), scalar(0.999), scalar(0.001), np.int32(iterations))

    def step() -> object:
        kernel((blocks,), (THREADS,), arguments)
        return out

    flops = 2 * CHAINS * iterations * blocks * THREADS
    return Kernel(step, flops, finding("fma_chains", chains=CHAINS, blocks=blocks, threads=THREADS))


def l2_reads(device: torch.device, info: Device, footprint: int) -> Kernel:
    """The same bytes, read again and again in one launch."""
    import numpy as np

    kernel, count = _compiled("read_l2"), footprint // 16
    data = torch.randint(0, 255, (count * 16,), dtype=torch.uint8, device=device)
    out = torch.zeros(1, dtype=torch.int32, device=device)
    passes = max(1, _L2_BYTES_PER_LAUNCH // footprint)
    arguments = (data.data_ptr(), out.data_ptr(), np.int64(count), np.int32(passes))
    blocks = info.sms * BLOCKS_PER_SM

    def step() -> object:
        kernel((blocks,), (THREADS,), arguments)
        return data, out  # alive for as long as the step is

    return Kernel(step, passes * count * 16, finding("repeated_reads", passes=passes, bytes=footprint))


def _compiled(name: str) -> Any:
    import cupy

    return cupy.RawModule(code=SOURCE, options=("-std=c++17",)).get_function(name)
