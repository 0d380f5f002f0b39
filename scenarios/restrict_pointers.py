"""Restrict pointers: without the promise, each store may change what the next load reads.

**In short:** `__restrict__` promises that stores change nothing that is still to be loaded, so the compiler may start all loads before the first store.

```text
one thread over time, 3 of its 16 rows         not to scale

plain       LLL──S LLL──S LLL──S     9 loads, a wait for each row
hoisted     LLL──S   L──S   L──S     5 loads, a wait for each row
restricted  LLLLL──SSS               5 loads, one wait

            L load    S store    ── wait for memory
            a row loads in; plain also mean and scale, each time
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `plain` | plain pointers | baseline, 178 us, 76 % of the memory's roof | a store may overlap `in`, `mean` or `scale`: all are loaded after it |
| `hoisted` | `mean` and `scale` in variables before the loop | *same*, 1.00x | reloads hit the L1 cache; the order remains |
| `restricted` | `plain` with `__restrict__` on every pointer | 1.21x, 147 us, 92 % of the roof | all 16 rows of a column are under way at once |

## Two costs of a possible overlap

Each thread normalizes one column, row after row:

    out = (in - mean) * scale

Nothing tells the compiler that `out` overlaps none of the others. So after each store it loads
`mean` and `scale` again. These reloads come from the L1 and cost no memory traffic. It also may not
load a later row before an earlier store. That costs time: a thread has one row under way, and waits
for memory once a row.

`const float*` does not help. It says that nothing is written through this pointer, not that nobody
writes there.

## Why 1.21x, and not 16x

Other threads fill the wait. By Little's law an SM needs

    bytes under way = bandwidth x latency

On an H200, 4.8 TB/s and about 0.7 us make 25 KB for each SM. Half of the traffic is stores, so half
of that has to be loads. A full SM of 2,048 threads, with one float each, has 8 KiB: two thirds of
what it needs, without any promise.

## Where it does not help

Where memory has less bandwidth for each SM, full SMs alone may be enough. With one row there is
nothing to reorder (`--sweep rows`). A kernel that keeps its results in variables, and stores them
after all loads, needs no promise.

## What it costs

Each row under way needs a register: 32 in place of 20, which still lets an SM be full. And nobody
checks the promise. A call in place (`out` is `in`) breaks it. This kernel survives that, as a
thread writes only what it has read; one that shifts or smooths would use old values.

The quick-start guide says that `const __restrict__` optimizes loads. It also makes them
LDG.CONSTANT, the read-only path, which on current GPUs is the same L1. The order is the gain: in
the machine code LDG (load) and STG (store) take turns; in `restricted` all LDG come first.
"""

import torch

from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario(
    topic="CUDA C++ kernels",
    needs=("cuda", "cupy"),
    roof="device memory",
    clock="device",
    params={"n": 4 * 2**20, "rows": 16, "block": 256},
    smoke={"n": 2**12, "rows": 16},
    sweep={"rows": (1, 2, 4, 8, 16, 32)},
    ladder=True,
    claim="quick-start guide: const __restrict__ lets the compiler optimize loads",
    no_effect_reason="enough threads are in flight to hide that each has one load under way",
    terms=("__restrict__", "aliasing"),
)
cuda = CudaSource(r"""
template <int ROWS> __global__ void plain(
    const float* in, const float* mean, const float* scale, float* out, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#pragma unroll
    for (int row = 0; row < ROWS; ++row) out[row * n + i] = (in[row * n + i] - mean[i]) * scale[i];
}

template <int ROWS> __global__ void hoisted(
    const float* in, const float* mean, const float* scale, float* out, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float m = mean[i], s = scale[i];
#pragma unroll
    for (int row = 0; row < ROWS; ++row) out[row * n + i] = (in[row * n + i] - m) * s;
}

template <int ROWS> __global__ void restricted(
    const float* __restrict__ in, const float* __restrict__ mean, const float* __restrict__ scale,
    float* __restrict__ out, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#pragma unroll
    for (int row = 0; row < ROWS; ++row) out[row * n + i] = (in[row * n + i] - mean[i]) * scale[i];
}
""")


@scenario.variant
def plain(lab, n, rows, block):
    """Plain pointers, the baseline: mean and scale are loaded again after each store, and rows wait
    for one another.
    """
    return _normalized(lab, n, rows, block, cuda.kernel(f"plain<{rows}>", threads=block))


@scenario.variant
def hoisted(lab, n, rows, block):
    """Mean and scale in variables before the loop, unlike `plain`: no reloads, and still one row
    after the other.
    """
    return _normalized(lab, n, rows, block, cuda.kernel(f"hoisted<{rows}>", threads=block))


@scenario.variant
def restricted(lab, n, rows, block):
    """The loop of `plain` with const __restrict__ on its pointers: all rows are loaded, then
    stored.
    """
    return _normalized(lab, n, rows, block, cuda.kernel(f"restricted<{rows}>", threads=block))


def _normalized(lab, n, rows, block, kernel):
    data = torch.randn(rows, n, device=lab.device)
    mean, scale = torch.randn(n, device=lab.device), torch.rand(n, device=lab.device)
    out = torch.empty_like(data)
    moved = 2 * data.nbytes + mean.nbytes + scale.nbytes

    def step():
        kernel((n + block - 1) // block, data, mean, scale, out, n)
        return out

    return Work(step, bytes=moved, flops=2 * rows * n, dtype="fp32", inputs=(data, mean, scale))
