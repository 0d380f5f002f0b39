"""Register remedies: what to do about a local array that does not fit into registers.

**In short:** a thread has 255 registers at most, and what does not fit is stored and loaded again: keep less at a time.

```text
                 a thread; a character is 12 values
                 0           registers │ 255
large_array      █████████████████████ │▒▒▒▒▒▒▒▒▒▒▒▒  136 spilled
smaller_array    ███                   │              none
recomputed       █                     │              none
shared_memory    █████████████████████ │░░░░░░░░░░░░░░░░ 192 shared

                 █ registers  ▒ local memory  ░ shared memory
```

| variant | what changes | expected (H200; compiled for sm_90) | why |
|---|---|---|---|
| `large_array` | 384 values in a local array | baseline, 512 us; 255 registers, 544 bytes stored and 544 loaded again | the array alone is more than a thread can have |
| `smaller_array` | 32 values at a time, means merged | 1.87x; 40 registers, no spill | the same arithmetic, and more threads fit an SM |
| `recomputed` | no array: all values are computed twice | 1.99x; 10 registers, no spill | one FMA costs less than a store and a load |
| `shared_memory` | the second half of the array in shared memory | 1.44x; 253 registers, no spill, 48 KiB a block | loads are issued ahead; as few threads fit an SM |

## What happens

Each thread adds up the terms of a series, and then squares of their distances from the mean:

    term = term * x + 1
    sum over k of (term[k] - mean)^2

The second loop needs all terms again. Its indices are known (`#pragma unroll`), so the array lies in
registers. What is too much the compiler spills to local memory: memory of the thread, cached in L1.
In its machine code each of these values is loaded just before its use, into one of few free
registers. So the thread waits for the cache each time. An SM has 65,536 registers: at 255 a thread
four blocks of 64 threads fit, an eighth of 2,048 threads, and few others work meanwhile.

## The three remedies

**Less at a time**, where the work can be divided. Here 32 terms have a mean of their own, and two
means and sums of squares are merged (Chan et al., 1979).

**Recompute** what costs few instructions: `recomputation` in small.

**Shared memory** for what has to be kept. It is limited as well:

    192 values * 4 bytes * 64 threads = 48 KiB

An H100 has 228 KiB for each SM, so four blocks fit, as before. The other two remedies leave room for
more. With 100 KiB (compute capability 8.6, 8.9, 12.0) only two fit.

## Where it does not help

With 64 values (`--sweep values`) nothing spills, and the plain array is right. A few spilled values
outside of loops cost little. An index that is known only when the kernel runs puts the whole array
into local memory, at any size; that is not counted as a spill.

## What the source says

The Triton guide names all three, without a figure. `launch_bounds` shows the other side: spills that
a cap on registers makes.
"""

import torch

from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario(
    topic="CUDA C++ kernels",
    needs=("cuda", "cupy"),
    roof="vector",
    clock="device",
    params={"n": 2**22, "values": 384},
    smoke={"n": 2**12, "values": 64},
    sweep={"values": (64, 192, 256, 320, 384)},
    item="element",
    claim=(
        "Triton guide: against register pressure smaller arrays, values computed again, "
        "temporaries in shared memory; without a figure"
    ),
    no_effect_reason="an array that fits into registers does not spill, so nothing is saved",
    terms=("register pressure", "local memory", "rematerialization", "local array"),
)
cuda = CudaSource(r"""
constexpr int THREADS = 64;
constexpr int CHUNK = 32;

__device__ __forceinline__ float next(float term, float x) { return fmaf(term, x, 1.0f); }

// The sum of squares about the mean of the first VALUES terms, which all have to be there when the mean is known.
template <int VALUES>
__global__ void __launch_bounds__(THREADS) large_array(const float* __restrict__ in, float* __restrict__ out, int n) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    const float x = in[i];
    float terms[VALUES], term = 0.0f, sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int k = 0; k < VALUES; ++k) {
        term = next(term, x);
        terms[k] = term;
        sum += term;
    }
    const float mean = sum * (1.0f / VALUES);
#pragma unroll
    for (int k = 0; k < VALUES; ++k) squares = fmaf(terms[k] - mean, terms[k] - mean, squares);
    out[i] = squares;
}

template <int VALUES>
__global__ void __launch_bounds__(THREADS) smaller_array(const float* __restrict__ in, float* __restrict__ out, int n) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    const float x = in[i];
    float terms[CHUNK], term = 0.0f, mean = 0.0f, squares = 0.0f;
#pragma unroll 1
    for (int first = 0; first < VALUES; first += CHUNK) {
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < CHUNK; ++k) {
            term = next(term, x);
            terms[k] = term;
            sum += term;
        }
        const float chunk_mean = sum * (1.0f / CHUNK);
        const float apart = chunk_mean - mean;
#pragma unroll
        for (int k = 0; k < CHUNK; ++k) squares = fmaf(terms[k] - chunk_mean, terms[k] - chunk_mean, squares);
        const float weight = CHUNK / (float)(first + CHUNK);  // of this chunk among all so far
        squares = fmaf(apart * apart, first * weight, squares);
        mean = fmaf(apart, weight, mean);
    }
    out[i] = squares;
}

template <int VALUES>
__global__ void __launch_bounds__(THREADS) recomputed(const float* __restrict__ in, float* __restrict__ out, int n) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    const float x = in[i];
    float term = 0.0f, sum = 0.0f, squares = 0.0f;
#pragma unroll 32
    for (int k = 0; k < VALUES; ++k) {
        term = next(term, x);
        sum += term;
    }
    const float mean = sum * (1.0f / VALUES);
    term = 0.0f;
#pragma unroll 32
    for (int k = 0; k < VALUES; ++k) {
        term = next(term, x);
        squares = fmaf(term - mean, term - mean, squares);
    }
    out[i] = squares;
}

template <int VALUES>
__global__ void __launch_bounds__(THREADS) shared_memory(const float* __restrict__ in, float* __restrict__ out, int n) {
    constexpr int HALF = VALUES / 2;
    __shared__ float shared[VALUES - HALF][THREADS];
    volatile float* rest = &shared[0][threadIdx.x];  // volatile, or the compiler would keep them in registers too
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    const float x = in[i];
    float terms[HALF], term = 0.0f, sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int k = 0; k < VALUES; ++k) {
        term = next(term, x);
        if (k < HALF) terms[k] = term;
        else rest[(k - HALF) * THREADS] = term;
        sum += term;
    }
    const float mean = sum * (1.0f / VALUES);
#pragma unroll
    for (int k = 0; k < VALUES; ++k) {
        const float apart = (k < HALF ? terms[k] : rest[(k - HALF) * THREADS]) - mean;
        squares = fmaf(apart, apart, squares);
    }
    out[i] = squares;
}
""")


@scenario.variant
def large_array(lab, n, values):
    """All terms in a local array, more of them than a thread has registers."""
    return _squares(lab, n, values, cuda.kernel(f"large_array<{values}>", threads=64), 6)


@scenario.variant
def smaller_array(lab, n, values):
    """An array of 32 terms, used again and again, against one of all; their means are merged."""
    if values % 32:
        lab.skip("it takes 32 values at a time: choose a multiple of 32")
    return _squares(lab, n, values, cuda.kernel(f"smaller_array<{values}>", threads=64), 6)


@scenario.variant
def recomputed(lab, n, values):
    """No array: the second loop computes the terms again, with one FMA each."""
    return _squares(lab, n, values, cuda.kernel(f"recomputed<{values}>", threads=64), 8)


@scenario.variant
def shared_memory(lab, n, values):
    """The first half of the terms in registers, the other half in shared memory."""
    return _squares(lab, n, values, cuda.kernel(f"shared_memory<{values}>", threads=64), 6)


def _squares(lab, n, values, kernel, flops_of_a_value):
    data = 0.95 * torch.rand(n, device=lab.device)
    out = torch.empty(n, device=lab.device)

    def step():
        kernel(-(-n // 64), data, out, n)
        return out

    return Work(
        step,
        bytes=data.nbytes + out.nbytes,
        flops=flops_of_a_value * values * n,
        dtype="fp32",
        items=n,
        inputs=data,
    )
