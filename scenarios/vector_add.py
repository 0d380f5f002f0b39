"""Vector add: one FLOP for 12 bytes, so torch, Triton and CUDA C++ meet at the same roof.

An addition of two fp32 arrays loads 8 bytes, does 1 FLOP and stores 4 bytes: 1/12 = 0.083
FLOP/byte. In fp16 it is 1/6 (`--sweep dtype`). An H200 reaches its fp32 roof only from about 15
FLOP/byte on, so here time is bytes over bandwidth, in whatever language the kernel is written.
Nothing is left to compare but how well each keeps the memory busy, and the ceiling of a copy is
about all there is: 104 % of it here, as a sum writes a third of its bytes and a copy half.

`cuda_scalar` is the kernel of most first CUDA courses, one element for each thread. `cuda_vectors`
loads 16 bytes in one instruction, 4 floats or 8 halves. `in_triton` does what `cuda_vectors` does,
with as many threads and as many bytes for each: Triton knows that tensors begin at multiples of 16
bytes, and makes 16-byte loads of a block by itself. The machine code of both has LDG.E.128.

The torch.compile tutorial has Triton at 90-95 % of CUDA. That depends on which CUDA. On an H200
`cuda_scalar` is at 80 % of the others, with too few bytes under way, and `in_triton` is the *same*
as `cuda_vectors` (1.000x, measured here): between two kernels at the roof of memory there is no
5-10 % to lose. In fp16 a thread of `cuda_scalar` loads 2 bytes at a time, and falls further behind.
`in_torch` has vectors, too: a library's kernel is hard to beat at one operation, and easily at two,
which it runs one after the other (`fused_softmax`).

What Triton knows of the length decides. An integer argument that is a multiple of 16 is compiled as
one, any other as any number. Then the mask `place < n` may change from one element to the next, and
every load is one of a single element: try `--sweep n`, which has a length that is one element
shorter. `cuda_vectors` does not mind, as only the last thread of all does the tail one by one. In
Triton the way out is a kernel that masks its last block only.

On a CPU there is only `in_torch`, and its share of the roof.
"""

import torch

from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

try:
    import triton
    import triton.language as tl
except ImportError:  # the variant says that it needs it
    triton = None

scenario = Scenario(
    topic="Triton, compilers, attention",
    roof="device memory",
    clock="device",
    params={"n": 128 * 2**20, "block": 256, "dtype": "fp32"},
    cpu={"n": 8 * 2**20},
    smoke={"n": 100_003},
    sweep={
        "dtype": ("fp32", "fp16"),
        "n": (128 * 2**20, 128 * 2**20 - 1),
        "block": (64, 128, 256, 512, 1024),
    },
    ladder=True,
    item="element",
    claim=(
        "Triton guide and torch.compile tutorial: 1/12 FLOP/byte in fp32; torch.compile "
        "tutorial: Triton is 90-95 % of CUDA"
    ),
    no_effect_reason="they are all at the roof of memory",
    terms=("triton", "axpy", "bandwidth"),
)
_DTYPES = {"fp32": torch.float32, "fp16": torch.float16}
_VECTOR = 16  # bytes of the longest load of a thread before Blackwell
cuda = CudaSource(r"""
using fp32 = float;
struct fp16 {
    unsigned short bits;
};

__device__ fp32 sum(fp32 a, fp32 b) { return a + b; }

__device__ fp16 sum(fp16 a, fp16 b) {
    fp16 out;
#ifdef __CUDA_ARCH__
    asm("add.f16 %0, %1, %2;" : "=h"(out.bits) : "h"(a.bits), "h"(b.bits));
#else
    const _Float16 value = reinterpret_cast<_Float16&>(a) + reinterpret_cast<_Float16&>(b);
    out = reinterpret_cast<const fp16&>(value);
#endif
    return out;
}

template <typename T>
__global__ void scalar(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ out, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = sum(a[i], b[i]);
}

template <typename T>
__global__ void vectors(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ out, long long n) {
    constexpr int WIDTH = 16 / sizeof(T);
    struct alignas(16) Vector {
        T of[WIDTH];
    };
    const long long first = WIDTH * ((long long)blockIdx.x * blockDim.x + threadIdx.x);
    if (first + WIDTH <= n) {
        const Vector x = *reinterpret_cast<const Vector*>(a + first), y = *reinterpret_cast<const Vector*>(b + first);
        Vector z;
#pragma unroll
        for (int k = 0; k < WIDTH; k++) z.of[k] = sum(x.of[k], y.of[k]);
        *reinterpret_cast<Vector*>(out + first) = z;
    } else {
#pragma unroll 1
        for (long long i = first; i < n; i++) out[i] = sum(a[i], b[i]);
    }
}
""")


@scenario.variant
def in_torch(lab, n, dtype):
    """torch.add into an array that is there already."""
    return _work(lab, n, dtype, lambda a, b, out: torch.add(a, b, out=out))


@scenario.variant(needs=("cuda", "cupy"))
def cuda_scalar(lab, n, block, dtype):
    """CUDA C++, one element for each thread."""
    kernel = cuda.kernel(f"scalar<{dtype}>", threads=block)
    return _work(lab, n, dtype, lambda a, b, out: kernel(-(-n // block), a, b, out, n))


@scenario.variant(needs=("cuda", "cupy"))
def cuda_vectors(lab, n, block, dtype):
    """CUDA C++, 16 bytes for each thread."""
    kernel = cuda.kernel(f"vectors<{dtype}>", threads=block)
    per_block = block * _VECTOR // _DTYPES[dtype].itemsize
    return _work(lab, n, dtype, lambda a, b, out: kernel(-(-n // per_block), a, b, out, n))


@scenario.variant(needs=("cuda", "triton"))
def in_triton(lab, n, block, dtype):
    """Triton, with as many threads, and as many bytes for each."""
    per_block = block * _VECTOR // _DTYPES[dtype].itemsize
    grid, warps = (triton.cdiv(n, per_block),), block // 32
    return _work(
        lab, n, dtype, lambda a, b, out: _sum[grid](a, b, out, n, BLOCK=per_block, num_warps=warps)
    )


if triton is not None:

    @triton.jit
    def _sum(a, b, out, n, BLOCK: tl.constexpr):
        """One program does one block of elements."""
        place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        inside = place < n
        tl.store(
            out + place,
            tl.load(a + place, mask=inside) + tl.load(b + place, mask=inside),
            mask=inside,
        )


def _work(lab, n, dtype, add):
    a, b = (torch.randn(n, device=lab.device).to(_DTYPES[dtype]) for _ in range(2))
    out = torch.empty_like(a)

    def step():
        add(a, b, out)
        return out

    return Work(step, bytes=3 * a.nbytes, flops=n, dtype=dtype, items=n, inputs=(a, b))
