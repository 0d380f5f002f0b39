"""Arithmetic intensity: FLOPs per byte rise when intermediate results stay in registers.

**In short:** where memory is the limit, arithmetic is free, so fuse a chain of operations to move fewer bytes.

```text
      loads    kernel             stores   bytes an element
four  a, b ──▶ a + b         ──▶  u        12
      u, a ──▶ u * a         ──▶  v        12
      v, b ──▶ v + b         ──▶  u        12
      u    ──▶ u * u         ──▶  out       8    44 in all
two   a, b ──▶ (a + b) * a   ──▶  u        12
      u, b ──▶ (u + b) ** 2  ──▶  out      12    24 in all
fused a, b ──▶ all of it     ──▶  out      12    12 in all
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `four_passes` | four kernels, one float a thread | baseline, 1.79 ms, 3.3 TB/s | 44 bytes an element; too few bytes under way |
| `unrolled` | four elements a thread, loaded before the first is used | 1.31x, 4.3 TB/s | the same 44 bytes, more of them under way |
| `float4` | those four in one load of 16 bytes | 1.31x; 1.00x over `unrolled` | how the four are loaded makes no difference |
| `two_passes` | operations fused in pairs | 2.42x; 1.84x over `float4` | 24 bytes |
| `fused` | one kernel | 4.83x; 3.68x over `float4` | 12 bytes, at 2.3 % of the fp32 roof |
| `torch_eager` | the four operations in PyTorch | as fast as `float4` | for scale: the same 44 bytes |

## Time is bytes over bandwidth

All variants compute `out = ((a + b) * a + b) ** 2` of the same arrays: 4 FLOPs (floating-point
operations) an element. Arithmetic intensity is FLOPs over the bytes moved to and from memory:

    four kernels: 4 / 44 = 0.09 FLOP/byte
    fused:        4 / 12 = 0.33 FLOP/byte

Both lie far left of the ridge, where arithmetic becomes the limit: about 15 FLOP/byte on an H200 in
fp32. There the gain over `float4` is that of the bytes:

    two_passes: 44 / 24 = 1.8x
    fused:      44 / 12 = 3.7x

## Up, or to the right

On the roofline plot, `unrolled` and `float4` move the point up, towards the roof above it. The
intensity stays what it is, and what they gain ends at that roof (see `vectorized_loads`). Fusion
moves the point to the right, under a higher part of the roof. torch.compile does this with a chain
of pointwise operations (see `small_kernels`), and FlashAttention with a softmax.

More FLOPs for the same bytes raise the intensity too, but make no program faster.

## What the source says

The performance basics name 3.4x, from an intensity of 0.25 to one of 3.00. Its five kernels compute
five different functions, and its bytes are not those moved. An addition of two fp32 arrays does 1
FLOP for two loads and a store:

    1 / 12 = 0.083 FLOP/byte, not 0.25

Here every variant computes the same function, and declares the bytes that it moves.
"""

import torch

from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario(
    topic="CUDA C++ kernels",
    needs=("cuda", "cupy"),
    roof="device memory",
    clock="device",
    params={"n": 128 * 2**20, "block": 256},
    smoke={"n": 100_003},
    sweep={"block": (64, 128, 256, 512, 1024)},
    claim="performance basics: 3.4x, from 0.25 to 3.00 FLOP/byte",
    ladder=True,
    terms=("roofline", "fusion", "kernel fusion", "memory-bound", "float4"),
)
cuda = CudaSource(r"""
struct Add {
    static __device__ float of(float x, float y) { return x + y; }
};
struct Multiply {
    static __device__ float of(float x, float y) { return x * y; }
};
struct FirstTwo {
    static __device__ float of(float a, float b) { return (a + b) * a; }
};
struct LastTwo {
    static __device__ float of(float u, float b) { return (u + b) * (u + b); }
};
struct All {
    static __device__ float of(float a, float b) { return LastTwo::of(FirstTwo::of(a, b), b); }
};

template <typename Operation>
__global__ void scalar(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out,
                       long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = Operation::of(x[i], y[i]);
}

template <typename Operation>
__global__ void unrolled(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out,
                         long long n) {
    const long long begin = 4LL * blockIdx.x * blockDim.x + threadIdx.x;
    if (begin + 3 * blockDim.x < n) {  // one test for all: with one for each, loads wait for the stores before them
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const long long i = begin + k * blockDim.x;
            out[i] = Operation::of(x[i], y[i]);
        }
    } else {
#pragma unroll 1
        for (long long i = begin; i < n; i += blockDim.x) out[i] = Operation::of(x[i], y[i]);
    }
}

template <typename Operation>
__global__ void vectorized(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out,
                           long long n) {
    const long long first = 4 * ((long long)blockIdx.x * blockDim.x + threadIdx.x);
    if (first + 4 <= n) {
        const float4 u = *reinterpret_cast<const float4*>(x + first), v = *reinterpret_cast<const float4*>(y + first);
        *reinterpret_cast<float4*>(out + first) = make_float4(
            Operation::of(u.x, v.x), Operation::of(u.y, v.y), Operation::of(u.z, v.z), Operation::of(u.w, v.w));
    } else {
#pragma unroll 1
        for (long long i = first; i < n; i++) out[i] = Operation::of(x[i], y[i]);
    }
}
""")


@scenario.variant
def four_passes(lab, n, block):
    """Four kernels, one float for each thread: 44 bytes an element."""
    add, multiply = (
        cuda.kernel("scalar<Add>", threads=block),
        cuda.kernel("scalar<Multiply>", threads=block),
    )
    return _four(lab, n, block, add, multiply)


@scenario.variant
def unrolled(lab, n, block):
    """Four elements for each thread, in an unrolled loop, in place of one: the same 44 bytes."""
    add, multiply = (
        cuda.kernel("unrolled<Add>", threads=block),
        cuda.kernel("unrolled<Multiply>", threads=block),
    )
    return _four(lab, n, 4 * block, add, multiply)


@scenario.variant
def float4(lab, n, block):
    """The four elements in one load of 16 bytes, not four loads: the same 44 bytes in all."""
    add, multiply = (
        cuda.kernel("vectorized<Add>", threads=block),
        cuda.kernel("vectorized<Multiply>", threads=block),
    )
    return _four(lab, n, 4 * block, add, multiply)


@scenario.variant
def two_passes(lab, n, block):
    """Two kernels of two operations each: 24 bytes an element in place of 44."""
    first = cuda.kernel("vectorized<FirstTwo>", threads=block)
    last = cuda.kernel("vectorized<LastTwo>", threads=block)
    a, b, u, out = _arrays(lab, n, 2)
    return _work(n, 4 * block, 24, a, b, out, (first, a, b, u), (last, u, b, out))


@scenario.variant
def fused(lab, n, block):
    """One kernel for all four operations: 12 bytes an element in place of 24."""
    kernel = cuda.kernel("vectorized<All>", threads=block)
    a, b, out = _arrays(lab, n, 1)
    return _work(n, 4 * block, 12, a, b, out, (kernel, a, b, out))


@scenario.variant(against=None)
def torch_eager(lab, n):
    """The four operations in PyTorch, for scale."""
    a, b, u, v, out = _arrays(lab, n, 3)

    def step():
        torch.mul(torch.add(a, b, out=u), a, out=v)
        return torch.square(torch.add(v, b, out=u), out=out)

    return Work(step, bytes=44 * n, flops=4 * n, dtype="fp32", inputs=(a, b))


def _four(lab, n, per_block, add, multiply):
    a, b, u, v, out = _arrays(lab, n, 3)
    passes = (add, a, b, u), (multiply, u, a, v), (add, v, b, u), (multiply, u, u, out)
    return _work(n, per_block, 44, a, b, out, *passes)


def _arrays(lab, n, empty):
    random = (torch.rand(n, device=lab.device) for _ in range(2))
    return *random, *(torch.empty(n, device=lab.device) for _ in range(empty))


def _work(n, per_block, bytes_each, a, b, out, *passes):
    def step():
        for kernel, *arrays in passes:
            kernel(-(-n // per_block), *arrays, n)
        return out

    return Work(step, bytes=bytes_each * n, flops=4 * n, dtype="fp32", inputs=(a, b))
