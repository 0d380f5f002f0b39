"""Loop unrolling: it removes loop instructions, and overlaps only what is independent.

**In short:** unrolling saves counters and branches; only another chain, or another warp, fills the wait for a result.

```text
one scheduler: a cell is a cycle, a letter starts an FMA (idealized)

rolled       a·········lll···············   28 cycles an FMA
unrolled     a···a···a···a···a···a···a···    4 cycles an FMA
four_chains  abcdabcdabcdabcdabcdabcdabcd    1 cycle an FMA
many_warps   abcdefghijklmnopabcdefghijkl    1 cycle an FMA

       a b c  other letters: other chains, or other warps
       l counter, comparison, branch (place not known)   · wait
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `rolled` | one FMA, then the instructions of the loop | baseline, 4 % of the fp32 roof | 28 cycles an FMA: the next one waits until the branch is decided |
| `unrolled` | 32 FMAs for each branch | 6.1x, 23 % of the roof | 4.6 cycles an FMA: still one chain |
| `four_chains` | four elements of a thread in turn | 3.35x over `unrolled`, 20.5x in all, 77 % of the roof | four FMAs are under way at a time |
| `many_warps` | the code of `unrolled`, 16 times the threads | 21.3x, 4 % over `four_chains` | another warp starts while one waits |

## What a chain is

An FMA (fused multiply-add) is one instruction. Each element x becomes a sum of powers, with `terms`
FMAs:

    y = y * x + 1

Each needs the y of the one before: a dependent chain. A scheduler, of which an SM has four, can
start an FMA in every cycle, but its result takes about 4. So one chain keeps the units busy for a
quarter of the time. The first three variants run one warp for each scheduler, so nothing else hides
a wait. (Cycles are computed from the time, at 1.98 GHz.)

## What unrolling cannot do

It does not break a dependence. The compiler may not either: floating-point numbers in another order
round differently. `four_chains` adds independent work, which is instruction-level parallelism
(ILP). It pays in registers. Up to 4x is possible with 128 fp32 lanes an SM (compute capability 8.6,
8.9, 9.0 and newer). With the 64 of an A100 an FMA of a warp needs two cycles: up to 2x.

## When which one helps

With many warps ILP gains little. It gains much where registers or shared memory admit few warps.
Unrolling pays in both, since loop instructions take cycles.

With loads in place of FMAs, unrolling alone does overlap: the compiler moves independent loads
ahead. A store that may change what they read prevents that (see `restrict_pointers`). Here each
thread loads its next element before the chain of this one, which hides the memory.

The performance basics and the Triton guide advise both steps. In the machine code look for FFMA
between two branches (BRA): in a row in `unrolled`, four in turn in `four_chains`.
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
    terms=("pragma unroll", "ilp", "fma", "dependent chain", "latency hiding"),
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
    """32 FMAs for each branch, not one; each waits for the one before."""
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
