"""Loop unrolling: it removes loop instructions, and overlaps only what is independent.

Each element x becomes a sum of powers of x, by Horner's rule: y = y x + 1, `terms` times. Each step
is one FMA (fused multiply-add), and needs the y of the one before, so the FMAs of one element are a
dependent chain. Each of an SM's four schedulers can start an FMA of a warp in every cycle, and has
its result about 4 cycles later. So one chain keeps the FMA units busy for a quarter of the time,
unless another warp or another chain fills the gaps.

The first three variants run one warp for each scheduler, so that nothing hides a wait:

`rolled` (`#pragma unroll 1`) has for each FMA a counter, a comparison and a branch, and the next
FMA waits until the branch is decided. On an H200 it takes 28 cycles for each FMA, 4 % of the fp32
roof. `unrolled` has 32 FMAs for each branch and takes 4.6 cycles: 6.1x as fast, at 23 %. They are
still one chain: unrolling does not break a dependence, and for floating-point numbers the compiler
may not either, since another order rounds differently. `four_chains` computes four elements of a
thread at a time: instruction-level parallelism (ILP). That is 3.35x over `unrolled`, 20.5x over
`rolled`, and 77 % of the roof. Up to 4x is possible on SMs with 128 fp32 lanes (compute capability
8.6, 8.9, 9.0 and newer), up to 2x on an A100, whose 64 lanes need two cycles for each FMA of a
warp.

`many_warps` is the code of `unrolled` with 16 times as many threads. A scheduler takes an
instruction of another warp in each cycle, so a single chain per thread is enough: 21.3x over
`rolled`, 4 % faster than `four_chains`. That is why ILP gains little in a kernel with many warps on
each SM, and much in one whose registers or shared memory admit only few. Unrolling pays in both,
since the instructions of the loop need cycles as well. All figures: H200, measured here; cycles are
computed from the time, at 1.98 GHz.

The performance basics and the Triton guide advise both steps. Look in the machine code for FFMA
between two branches (BRA), one after another in `unrolled`, four in turn in `four_chains`; and at
registers, which is what ILP costs. With loads in place of FMAs, unrolling alone does overlap where
loads of different elements are independent: the compiler moves them ahead of the first use (unless
a store may change what they read: see `restrict_pointers`). Here each thread loads its next element
before the chain of this one, which hides the memory latency.
"""

import torch

from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario(
    topic="CUDA C++ kernels",
    needs=("cuda", "cupy"),
    roof="latency",
    clock="device",
    params={"n": 32 * 2**20, "terms": 256},
    smoke={"n": 2**16, "terms": 32},
    ladder=True,
    claim=(
        "performance basics and Triton guide: unroll loops, and keep several independent "
        "operations in flight"
    ),
    terms=("pragma unroll", "ilp"),
)
cuda = CudaSource(r"""
template <int TERMS, int UNROLL, int CHAINS>
__global__ void series(const float* __restrict__ in, float* __restrict__ out, long long n) {
    const long long step = (long long)gridDim.x * blockDim.x;
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float next[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) next[c] = i + c * step < n ? in[i + c * step] : 0.0f;
#pragma unroll 1
    for (; i < n; i += CHAINS * step) {
        float x[CHAINS], y[CHAINS];
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) {
            const long long following = i + (CHAINS + c) * step;
            x[c] = next[c];
            y[c] = 1.0f;
            next[c] = following < n ? in[following] : 0.0f;  // on its way during the loop below
        }
#pragma unroll UNROLL
        for (int term = 0; term < TERMS; ++term) {
#pragma unroll
            for (int c = 0; c < CHAINS; ++c) y[c] = fmaf(y[c], x[c], 1.0f);
        }
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) {
            if (i + c * step < n) out[i + c * step] = y[c];
        }
    }
}
""")


@scenario.variant
def rolled(lab, n, terms):
    """One FMA, a counter, a comparison and a branch for each term; one warp for each scheduler."""
    return _series(lab, n, terms, cuda.kernel(f"series<{terms}, 1, 1>", threads=128))


@scenario.variant
def unrolled(lab, n, terms):
    """32 FMAs for each branch, each waiting for the one before."""
    return _series(lab, n, terms, cuda.kernel(f"series<{terms}, 32, 1>", threads=128))


@scenario.variant
def four_chains(lab, n, terms):
    """Four elements of a thread in turn, so that four FMAs are in flight."""
    return _series(lab, n, terms, cuda.kernel(f"series<{terms}, 32, 4>", threads=128))


@scenario.variant
def many_warps(lab, n, terms):
    """The code of `unrolled`, with 16 times as many warps."""
    return _series(
        lab, n, terms, cuda.kernel(f"series<{terms}, 32, 1>", threads=128), blocks_per_sm=16
    )


def _series(lab, n, terms, kernel, blocks_per_sm=1):
    blocks = (lab.sms or 2) * blocks_per_sm
    data = torch.rand(n, device=lab.device)
    out = torch.empty_like(data)

    def step():
        kernel(blocks, data, out, n)
        return out

    return Work(step, bytes=8 * n, flops=2 * terms * n, dtype="fp32", inputs=data)
