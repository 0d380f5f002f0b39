"""Roofline walk: up the slope, round the corner and along the roof, with 1 to 512 FMAs.

**In short:** arithmetic is free as long as moving the bytes takes longer, and from the ridge on the time grows with the arithmetic.

```text
FMAs   ░ time of the bytes   █ time of the FMAs      the longer counts
  16   ░░░░░
       █                                             memory limits
  64   ░░░░░
       █████                                         the ridge
 256   ░░░░░
       ██████████████████████                        arithmetic limits
 512   ░░░░░
       ████████████████████████████████████████████  twice that
one character: 25 us on an H200, computed from its two roofs
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `fma_1` | 1 FMA an element: 0.25 FLOP/byte | 129 us, 99 % of the roof | memory is the limit |
| `fma_2` | 2 FMAs: 0.5 FLOP/byte | 129 us, 99 % | twice the FLOP/s in the same time |
| `fma_4` | 4 FMAs: 1 FLOP/byte | 129 us, 99 % | as above |
| `fma_8` | 8 FMAs: 2 FLOP/byte | 129 us, 99 % | as above |
| `fma_16` | 16 FMAs: 4 FLOP/byte | 129 us, 98 % | 16 times the arithmetic of `fma_1` |
| `fma_32` | 32 FMAs: 8 FLOP/byte | 144 us, 88 % | below the ridge, in the corner |
| `fma_64` | 64 FMAs: 16 FLOP/byte | 186 us, 73 % | at the ridge: needs all of both |
| `fma_128` | 128 FMAs: 32 FLOP/byte | 314 us, 87 % | above the ridge, in the corner |
| `fma_256` | 256 FMAs: 64 FLOP/byte | 575 us, 95 % | arithmetic is the limit |
| `fma_512` | 512 FMAs: 128 FLOP/byte | 1.10 ms, 99 %, 62.4 TFLOP/s | twice the time of `fma_256`, nearly |
| `plus_one` | x + 1: 0.125 FLOP/byte | 129 us, 99 % | memory is the limit, at 0.8 % of the fp32 peak |
| `cubic` | a polynomial, 3 FMAs: 0.75 FLOP/byte | 129 us, 99 % | six times the FLOPs of `plus_one`, the same bytes |

## What each variant does

A kernel reads an array once and writes one: 8 bytes an element. In between it does a chain of F
fused multiply-adds (FMAs), `x = x * a + b`, 2 floating-point operations (FLOPs) each. The
arithmetic intensity is

    2 F / 8 = F / 4 FLOP/byte
    FLOP/s at most: min(peak, intensity x bandwidth)

The arithmetic of some warps is done while others wait for memory. So the FLOP/s double with F until
arithmetic takes longer.

## Where the corner is

The ridge is peak over bandwidth, on an H200

    63 TFLOP/s / 4.2 TB/s = 15 FLOP/byte

between 32 and 64 FMAs. There the corner is round: a kernel that needs all of both does not overlap
them perfectly.

## What the flat roof takes

An FMA takes 4 cycles, so one warp with one chain would use a quarter of its scheduler. Here a
thread has the four chains of a float4, and up to 16 warps share a scheduler. The loop is unrolled
to 128 FMAs, so counting is 2 % of the instructions; up to F = 32 there is no loop. Without FMA half
of the peak is lost: an addition or a multiplication alone takes as long as both.

## What the sources say

The performance basics have low intensity memory-bound and high intensity compute-bound: read it off
the plot. The functions differ, so nothing is compared. The Triton guide's pair is x + 1 and a
cubic, `plus_one` and `cubic`. Both are far down the slope, where only fewer bytes help
(`arithmetic_intensity`).
"""

import torch

from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario(
    topic="CUDA C++ kernels",
    needs=("cuda", "cupy"),
    clock="device",
    params={"n": 64 * 2**20, "block": 256},
    smoke={"n": 10_003},
    sweep={"block": (64, 128, 256, 512, 1024)},
    claim=(
        "performance basics and Triton guide: low intensity is memory-bound, high intensity "
        "compute-bound"
    ),
    terms=("arithmetic intensity", "ridge point", "memory-bound", "fma"),
)
A, B = 0.998, 0.001  # after 512 times x * A + B the values are still between 0 and 1, and apart
cuda = CudaSource(r"""
template <int FMAS>
struct Chain {
    static __device__ float4 of(float4 x, float a, float b) {
#pragma unroll (FMAS < 32 ? FMAS : 32)
        for (int i = 0; i < FMAS; i++) {
            x.x = fmaf(x.x, a, b);
            x.y = fmaf(x.y, a, b);
            x.z = fmaf(x.z, a, b);
            x.w = fmaf(x.w, a, b);
        }
        return x;
    }
};

struct PlusOne {
    static __device__ float4 of(float4 x, float, float) { return make_float4(x.x + 1, x.y + 1, x.z + 1, x.w + 1); }
};

struct Cubic {
    static __device__ float at(float x) { return fmaf(fmaf(fmaf(0.5f, x, -1.5f), x, 0.25f), x, 2.0f); }
    static __device__ float4 of(float4 x, float, float) { return make_float4(at(x.x), at(x.y), at(x.z), at(x.w)); }
};

// Four consecutive elements for each thread; fewer at the end.
template <typename Function>
__global__ void each(const float* __restrict__ in, float* __restrict__ out, float a, float b, long long n) {
    const long long first = 4 * ((long long)blockIdx.x * blockDim.x + threadIdx.x), left = n - first;
    if (left <= 0) return;
    float4 x;
    if (left >= 4) {
        x = *reinterpret_cast<const float4*>(in + first);
    } else {
        x = make_float4(in[first], left > 1 ? in[first + 1] : 0, left > 2 ? in[first + 2] : 0, 0);
    }
    x = Function::of(x, a, b);
    if (left >= 4) {
        *reinterpret_cast<float4*>(out + first) = x;
    } else {
        out[first] = x.x;
        if (left > 1) out[first + 1] = x.y;
        if (left > 2) out[first + 2] = x.z;
    }
}
""")


@scenario.variant
def fma_1(lab, n, block):
    """One FMA an element: 0.25 FLOP/byte, the start of the slope."""
    return _point(lab, n, block, cuda.kernel("each<Chain<1>>", threads=block), 2)


@scenario.variant(against=None)
def fma_2(lab, n, block):
    """2 FMAs an element, twice those of `fma_1`: 0.5 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<2>>", threads=block), 4)


@scenario.variant(against=None)
def fma_4(lab, n, block):
    """4 FMAs an element, twice those of `fma_2`: 1 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<4>>", threads=block), 8)


@scenario.variant(against=None)
def fma_8(lab, n, block):
    """8 FMAs an element, twice those of `fma_4`: 2 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<8>>", threads=block), 16)


@scenario.variant(against=None)
def fma_16(lab, n, block):
    """16 FMAs an element, twice those of `fma_8`: 4 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<16>>", threads=block), 32)


@scenario.variant(against=None)
def fma_32(lab, n, block):
    """32 FMAs an element, twice those of `fma_16`: 8 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<32>>", threads=block), 64)


@scenario.variant(against=None)
def fma_64(lab, n, block):
    """64 FMAs an element, twice those of `fma_32`: 16 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<64>>", threads=block), 128)


@scenario.variant(against=None)
def fma_128(lab, n, block):
    """128 FMAs an element, twice those of `fma_64`: 32 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<128>>", threads=block), 256)


@scenario.variant(against=None)
def fma_256(lab, n, block):
    """256 FMAs an element, twice those of `fma_128`: 64 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<256>>", threads=block), 512)


@scenario.variant(against=None)
def fma_512(lab, n, block):
    """512 FMAs an element, twice those of `fma_256`: 128 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<512>>", threads=block), 1024)


@scenario.variant(against=None)
def plus_one(lab, n, block):
    """x + 1 in place of FMAs: 1 FLOP, 0.125 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<PlusOne>", threads=block), 1)


@scenario.variant(against=None)
def cubic(lab, n, block):
    """A polynomial of third degree in place of x + 1: 6 FLOPs, 0.75 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Cubic>", threads=block), 6)


def _point(lab, n, block, kernel, flops):
    data, out = torch.rand(n, device=lab.device), torch.empty(n, device=lab.device)

    def step():
        kernel(-(-n // (4 * block)), data, out, A, B, n)
        return out

    return Work(step, bytes=8 * n, flops=flops * n, dtype="fp32", inputs=data)
