"""Divergence: a warp takes the time of every side that at least one of its threads takes.

The threads of a warp share an instruction stream. Where they disagree at a branch, the warp
executes both sides one after the other, each with the other side's threads switched off. Here one
side is expensive, a sum of powers of x in `terms` FMAs (fused multiply-adds), and the other is
zero, as in the Triton guide's example. Of each hundred elements `percent` take the expensive side,
at places drawn at random, the same in each hundred.

`branch`: with 25 % of the elements at random places, a warp of 32 without any on the expensive side
is one of ten thousand (0.75^32). So almost every warp computes it, with three quarters of its
threads switched off.

`predicated` computes it for every element, and selects: no branch, no divergence. It is what
`tl.where` does, in Triton, where both arguments are computed in full. Nothing is gained, since
almost every warp did that already: 1.01x (H200, measured here). Its FLOP/s are four times as high,
57 TFLOP/s and 91 % of the roof, but three quarters of them are thrown away. A rate says how busy
the units are, and not whether the work was needed.

`sorted_branch` is the kernel of `branch` on the same elements in another order, in which neighbours
take the same side. Whole warps agree, and three quarters of them skip it: 2.67x (H200). It is not
4x because all elements are still read and written, which alone takes a tenth of the time of
`branch`. That and a quarter of the arithmetic nearly add up to the 37 % that it takes: long runs of
elements of one side leave little to overlap. The sorting is not in the step: it is free where the
layout is chosen once, and costs several passes over memory where it is not.

`sorted_predicated` computes both sides of sorted data: the order is worth nothing without a branch.
It takes as long as `predicated`, and 2.65x as long as `sorted_branch` (H200): here a select loses,
by what the skipped side costs.

What follows: a branch that whole warps agree on is cheap, and one on random data costs as much as
the select. A select wins where both sides are a few instructions; there the compiler chooses it by
itself. Look at the machine code for the branch (BRA) that skips the FMAs, and at the share of the
fp32 roof. `--sweep percent` shows where a random branch pays: at 1 % a warp still takes the
expensive side 32 times of 100.
"""

import torch

from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario(
    topic="CUDA C++ kernels",
    needs=("cuda", "cupy"),
    roof="vector",
    clock="device",
    params={"n": 32 * 2**20, "terms": 512, "percent": 25, "block": 256},
    smoke={"n": 2**14, "terms": 64},
    sweep={"percent": (1, 3, 10, 25, 50, 100)},
    ladder=True,
    claim="Triton guide: tl.where in place of a branch avoids divergence",
    no_effect_reason=(
        "nearly every warp of random data has a thread on the expensive side, with or without a "
        "branch"
    ),
    terms=("branch", "warp divergence", "predication"),
)
_HUNDRED, _THRESHOLD = 100, 0.75
cuda = CudaSource(r"""
template <int TERMS> __device__ float series(float x) {
    float y = 1.0f;
#pragma unroll 32
    for (int term = 0; term < TERMS; ++term) y = fmaf(y, x, 1.0f);
    return y;
}

template <int TERMS> __global__ void branch(
    const float* __restrict__ in, float* __restrict__ out, float threshold, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float x = in[i];
    float y = 0.0f;
    if (x >= threshold) y = series<TERMS>(x);
    out[i] = y;
}

template <int TERMS> __global__ void predicated(
    const float* __restrict__ in, float* __restrict__ out, float threshold, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float x = in[i], y = series<TERMS>(x);
    out[i] = x >= threshold ? y : 0.0f;
}
""")


@scenario.variant
def branch(lab, n, terms, percent, block):
    """A branch for each thread, on elements in random order."""
    return _values(lab, n, terms, percent, block, cuda.kernel(f"branch<{terms}>", threads=block))


@scenario.variant
def predicated(lab, n, terms, percent, block):
    """The expensive side for every element, and a select."""
    kernel = cuda.kernel(f"predicated<{terms}>", threads=block)
    return _values(lab, n, terms, percent, block, kernel, all_computed=True)


@scenario.variant
def sorted_branch(lab, n, terms, percent, block):
    """The branch, on the same elements sorted by the side that they take."""
    return _values(
        lab, n, terms, percent, block, cuda.kernel(f"branch<{terms}>", threads=block), in_order=True
    )


@scenario.variant
def sorted_predicated(lab, n, terms, percent, block):
    """The select, on the sorted elements."""
    kernel = cuda.kernel(f"predicated<{terms}>", threads=block)
    return _values(lab, n, terms, percent, block, kernel, in_order=True, all_computed=True)


def _values(lab, n, terms, percent, block, kernel, in_order=False, all_computed=False):
    hundreds, rest = divmod(n, _HUNDRED)
    expensive = torch.zeros(_HUNDRED, dtype=torch.bool, device=lab.device)
    expensive[torch.randperm(_HUNDRED, device=lab.device)[:percent]] = True
    low = torch.where(expensive, _THRESHOLD, 0.0)
    width = torch.where(expensive, 1 - _THRESHOLD, _THRESHOLD)
    data = torch.rand(hundreds + 1, _HUNDRED, device=lab.device) * width + low
    # Elements of one place in their hundreds have one side: by columns they are sorted, and no
    # output is rearranged.
    first, last = data[:-1], data[-1, :rest]
    data = torch.cat([(first.t() if in_order else first).reshape(-1), last])
    out = torch.empty_like(data)
    whole = (
        out[: n - rest].view(_HUNDRED, hundreds).t()
        if in_order
        else out[: n - rest].view(hundreds, _HUNDRED)
    )
    outputs = [part for part in (whole, out[n - rest :]) if part.numel()]
    computed = n if all_computed else hundreds * percent + int(expensive[:rest].sum())

    def step():
        kernel((n + block - 1) // block, data, out, _THRESHOLD, n)

    return Work(
        step, bytes=8 * n, flops=2 * terms * computed, dtype="fp32", inputs=data, output=outputs
    )
