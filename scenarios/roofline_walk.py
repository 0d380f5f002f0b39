"""Roofline walk: up the slope, round the corner and along the roof, with 1 to 512 FMAs.

Every kernel here reads an array once and writes one: 8 bytes an element. Between the load and the
store it does a chain of F fused multiply-adds (FMAs), `x = x * a + b`, 2 FLOPs (floating-point
operations) each. So the arithmetic intensity is 2 F / 8 = F / 4 FLOP/byte, and doubles with each
variant. What limits a variant follows from it alone.

On the slope memory is the limit. From 1 to 16 FMAs the time is the same, 129 us at 4.17 TB/s (H200,
measured here): the arithmetic of some warps is done while others wait for memory, so the FLOP/s
double with F. Beyond the ridge arithmetic is the limit: in the end the time doubles with F, and the
FLOP/s reach the roof, 62.4 TFLOP/s with 512 FMAs, 99 % of it. The ridge is the peak over the
bandwidth, on an H200 63 TFLOP/s over 4.2 TB/s, 15 FLOP/byte: between 32 FMAs (8 FLOP/byte) and 64
(16). Near it the corner is round: 88 % of the roof with 32 FMAs, 73 % with 64 and 87 % with 128. A
kernel that needs all of both does not overlap them perfectly.

To come near the flat roof FMAs must be independent. One takes 4 cycles until its result can be
used, so a single warp with a single chain would use a quarter of its scheduler. Here each thread
has the four chains of a float4, and up to 16 warps share a scheduler. The loop is unrolled to 128
FMAs, so that counting and jumping is 2 % of the instructions. The machine code is a row of FFMA,
and the number F is a constant of the template: for F up to 32 there is no loop.

`plus_one` and `cubic` are the Triton guide's pair: x + 1, and a polynomial of third degree, 3 FMAs
by Horner's rule. The second does six times the FLOPs in the same 129 us (H200): at 0.125 and 0.75
FLOP/byte both are far down the slope. x + 1 runs at 0.8 % of the fp32 peak, and could be no faster,
since it is at 99 % of the memory's roof. Only fewer bytes help (see `arithmetic_intensity`).

These are different functions, so nothing is compared, and the statement of the performance basics,
low intensity is memory-bound and high intensity is compute-bound, is to be read off the plot. Half
of the fp32 peak is lost without FMA: an addition or a multiplication alone takes as long as both
together.
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
    """One FMA: 0.25 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<1>>", threads=block), 2)


@scenario.variant(against=None)
def fma_2(lab, n, block):
    """2 FMAs: 0.5 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<2>>", threads=block), 4)


@scenario.variant(against=None)
def fma_4(lab, n, block):
    """4 FMAs: 1 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<4>>", threads=block), 8)


@scenario.variant(against=None)
def fma_8(lab, n, block):
    """8 FMAs: 2 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<8>>", threads=block), 16)


@scenario.variant(against=None)
def fma_16(lab, n, block):
    """16 FMAs: 4 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<16>>", threads=block), 32)


@scenario.variant(against=None)
def fma_32(lab, n, block):
    """32 FMAs: 8 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<32>>", threads=block), 64)


@scenario.variant(against=None)
def fma_64(lab, n, block):
    """64 FMAs: 16 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<64>>", threads=block), 128)


@scenario.variant(against=None)
def fma_128(lab, n, block):
    """128 FMAs: 32 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<128>>", threads=block), 256)


@scenario.variant(against=None)
def fma_256(lab, n, block):
    """256 FMAs: 64 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<256>>", threads=block), 512)


@scenario.variant(against=None)
def fma_512(lab, n, block):
    """512 FMAs: 128 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Chain<512>>", threads=block), 1024)


@scenario.variant(against=None)
def plus_one(lab, n, block):
    """x + 1: 1 FLOP, 0.125 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<PlusOne>", threads=block), 1)


@scenario.variant(against=None)
def cubic(lab, n, block):
    """A polynomial of third degree: 6 FLOPs, 0.75 FLOP/byte."""
    return _point(lab, n, block, cuda.kernel("each<Cubic>", threads=block), 6)


def _point(lab, n, block, kernel, flops):
    data, out = torch.rand(n, device=lab.device), torch.empty(n, device=lab.device)

    def step():
        kernel(-(-n // (4 * block)), data, out, A, B, n)
        return out

    return Work(step, bytes=8 * n, flops=flops * n, dtype="fp32", inputs=data)
