"""Divergence: a warp takes the time of every side that at least one of its threads takes.

**In short:** a branch saves time only where all threads of a warp skip the expensive side together.

```text
drawn with 8 threads a warp, not 32    expensive side runs in

branch            █··█····  ·█···█··  ··█···█·  █····█··   4 warps
predicated        █▒▒█▒▒▒▒  ▒█▒▒▒█▒▒  ▒▒█▒▒▒█▒  █▒▒▒▒█▒▒   4 warps
sorted_branch     ████████                                 1 warp
sorted_predicated ████████  ▒▒▒▒▒▒▒▒  ▒▒▒▒▒▒▒▒  ▒▒▒▒▒▒▒▒   4 warps

█: needed   ▒: computed and thrown away   ·: thread switched off
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `branch` | a branch for each thread, elements in random order | baseline, 605 us | almost every warp takes the expensive side |
| `predicated` | computes the expensive side for all, and selects | 1.01x: *same*; 57 TFLOP/s, 91 % of the roof | almost every warp did that already |
| `sorted_branch` | `branch`, on elements sorted by side | 2.67x | whole warps agree: three quarters skip the expensive side |
| `sorted_predicated` | the select, on sorted elements | as `predicated`; 2.65x as long as `sorted_branch` | order is worth nothing without a branch |

## What a warp does at a branch

The 32 threads of a warp share an instruction stream. Where they disagree, the warp executes both
sides one after the other, each with the other side's threads switched off. Here one side is a sum
of powers in `terms` FMAs (fused multiply-adds), the other is zero. Of each hundred elements
`percent` take the expensive side, at random places, the same in each hundred. At 25 % a warp
without any is one of ten thousand:

    0.75^32 = 0.0001

## Why sorting gains less than 4x

All elements are still read and written, which takes a tenth of the time of `branch`. That and a
quarter of the arithmetic nearly add up to the 37 % of the time that is left. Long runs of one side
leave little to overlap. The sorting is not timed: it is free where the layout is chosen once, and
costs several passes over memory where it is not.

## A rate is not a result

`predicated` has four times the FLOP/s of `branch`, but three quarters are thrown away. A rate says
how busy the units are, not whether the work was needed.

## What the source says

The Triton guide avoids divergence with `tl.where`, which computes both arguments in full. On random
data it gains nothing, on sorted data it loses what the skipped side costs. A select wins where both
sides are a few instructions; there the compiler chooses it by itself. The machine code shows the
branch (BRA) that skips the FMAs.

`--sweep percent` shows where a random branch pays. At 1 % a warp still takes the expensive side 32
times of 100.
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
    terms=("branch", "warp divergence", "predication", "tl.where", "select"),
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
    """The expensive side for every element, and a select in place of the branch."""
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
    """The select of `predicated`, on the sorted elements of `sorted_branch`."""
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
