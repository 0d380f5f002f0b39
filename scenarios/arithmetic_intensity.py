"""Arithmetic intensity: FLOPs per byte rise when intermediate results stay in registers.

All variants compute `out = ((a + b) * a + b) ** 2` of the same arrays: 4 FLOPs (floating-point
operations) an element. Without fusion this is four operations one after the other, as an array
library runs them, and each reads its inputs from memory and writes its result to it: 12 bytes an
element for an operation of two arrays, 8 for the square. That is 44 bytes, and 4 / 44 = 0.09
FLOP/byte. Memory is the limit by far: an H200 reaches the fp32 roof only from about 15 FLOP/byte
on.

Two rungs change how the bytes are moved, not how many. `unrolled` gives each thread four elements,
all of whose loads are under way before the first is used. `float4` loads those four in one
instruction. The intensity stays what it is: on the plot such a change moves a point up, towards the
roof above it, never to the right, and gains what is left to that roof at most. On an H200 both are
1.31x, from 3.3 to 4.3 TB/s: single floats leave too few bytes under way (see `vectorized_loads`),
and how the four are loaded makes no difference (1.00x).

The other two move fewer bytes. `two_passes` fuses the operations in pairs, `(a + b) * a` and `(u +
b) ** 2`: 12 bytes each, 24 in all. `fused` has one kernel, which reads a and b once and writes out
once: 12 bytes, 0.33 FLOP/byte. Time is bytes over bandwidth, so the gain over `float4` is 44 / 24 =
1.8x and 44 / 12 = 3.7x. Measured here on an H200: 1.84x and 3.68x, hence 4.83x over `four_passes`,
at 2.3 % of the fp32 roof. Left of the ridge, where that roof begins, FLOPs are free, and bytes are
what to save. This is what torch.compile does with a chain of pointwise operations (see
`small_kernels`), and what FlashAttention does with a softmax.

The performance basics name 3.4x, from an intensity of 0.25 to one of 3.00. Its five kernels compute
five different functions, and its bytes are not those moved: an addition of two fp32 arrays does 1
FLOP for 12 bytes, two loads and a store, which is 0.083 and not 0.25. More FLOPs for the same bytes
are a higher intensity, too, but not a faster program. Here the function is the same in all
variants, and each declares the bytes that it moves through memory. `torch_eager` is the same chain
in PyTorch, for scale: as fast as `float4` (H200, measured here).
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
    """Four elements for each thread, in an unrolled loop: the same 44 bytes."""
    add, multiply = (
        cuda.kernel("unrolled<Add>", threads=block),
        cuda.kernel("unrolled<Multiply>", threads=block),
    )
    return _four(lab, n, 4 * block, add, multiply)


@scenario.variant
def float4(lab, n, block):
    """The four elements in one load of 16 bytes: the same 44 bytes."""
    add, multiply = (
        cuda.kernel("vectorized<Add>", threads=block),
        cuda.kernel("vectorized<Multiply>", threads=block),
    )
    return _four(lab, n, 4 * block, add, multiply)


@scenario.variant
def two_passes(lab, n, block):
    """Two kernels of two operations each: 24 bytes."""
    first = cuda.kernel("vectorized<FirstTwo>", threads=block)
    last = cuda.kernel("vectorized<LastTwo>", threads=block)
    a, b, u, out = _arrays(lab, n, 2)
    return _work(n, 4 * block, 24, a, b, out, (first, a, b, u), (last, u, b, out))


@scenario.variant
def fused(lab, n, block):
    """One kernel: 12 bytes."""
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
