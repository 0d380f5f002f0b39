"""Vector add: one FLOP for 12 bytes, so torch, Triton and CUDA C++ meet at the same roof.

**In short:** an addition takes bytes over bandwidth in any language, if each thread has enough bytes under way.

```text
an element    a ████  b ████ ─▶ 1 FLOP ─▶ out ████     12 bytes

what a thread loads, │ ends an instruction
cuda_scalar   a ████│                  b ████│
cuda_vectors  a ████████████████│      b ████████████████│
in_triton     a ████████████████│      b ████████████████│
   n odd      a ████│████│████│████│   b ████│████│████│████│
                                                    █ 1 byte
```

| variant | what changes | expected (H200, fp32) | why |
|---|---|---|---|
| `in_torch` | `torch.add`, a kernel of the library | baseline, 370 us, 104 % of the roof of a copy | loads vectors |
| `cuda_scalar` | CUDA C++, one element for each thread | 0.80x, 461 us, 83 % | too few bytes under way |
| `cuda_vectors` | 16 bytes for each thread | *same*, 1.003x; 1.25x over `cuda_scalar` | four times the bytes under way |
| `in_triton` | Triton, as many threads and bytes | *same*, 1.003x | makes 16-byte loads by itself |

## What limits an addition

It loads 8 bytes, does 1 FLOP and stores 4 bytes:

    1 FLOP / 12 bytes = 0.083 FLOP/byte in fp32, 1/6 in fp16 (--sweep dtype)

An H200 reaches its fp32 roof only from about 15 FLOP/byte on. So the time is bytes over bandwidth,
and all that differs is how well a kernel keeps the memory busy. The roof is that of a copy, half of
whose bytes are writes. Of a sum only a third are: hence 104 %.

## Is Triton slower than CUDA?

The torch.compile tutorial has Triton at 90-95 % of CUDA. That depends on which CUDA. On an H200
`in_triton` is the *same* as `cuda_vectors`, and 1.25x as fast as `cuda_scalar`, the kernel of most
first courses. Between two kernels at the roof of memory there is no 5-10 % to lose. In fp16 a
thread of `cuda_scalar` loads 2 bytes at a time, and falls further behind.

A library's kernel is hard to beat at one operation, and easily at two, which it runs one after the
other (`fused_softmax`).

## What Triton knows of the length

Triton knows that tensors begin at multiples of 16 bytes, and turns a block into 16-byte loads
(LDG.E.128 in the machine code, as in `cuda_vectors`). It compiles an integer argument that is a
multiple of 16 as such, any other as any number. Then the mask `place < n` may change from one
element to the next, and every load is of a single element.

Try `--sweep n`, whose second length is one element shorter. `cuda_vectors` does not mind: only its
last thread adds the tail one by one. In Triton, mask only the last block.

## On a CPU

There is only `in_torch`, and its share of the roof.
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
    terms=("axpy", "memory bandwidth", "float4"),
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
    """torch.add into an array that is there already: the baseline."""
    return _work(lab, n, dtype, lambda a, b, out: torch.add(a, b, out=out))


@scenario.variant(needs=("cuda", "cupy"))
def cuda_scalar(lab, n, block, dtype):
    """CUDA C++ in place of the library, one element for each thread."""
    kernel = cuda.kernel(f"scalar<{dtype}>", threads=block)
    return _work(lab, n, dtype, lambda a, b, out: kernel(-(-n // block), a, b, out, n))


@scenario.variant(needs=("cuda", "cupy"))
def cuda_vectors(lab, n, block, dtype):
    """CUDA C++, 16 bytes for each thread in place of one element."""
    kernel = cuda.kernel(f"vectors<{dtype}>", threads=block)
    per_block = block * _VECTOR // _DTYPES[dtype].itemsize
    return _work(lab, n, dtype, lambda a, b, out: kernel(-(-n // per_block), a, b, out, n))


@scenario.variant(needs=("cuda", "triton"))
def in_triton(lab, n, block, dtype):
    """Triton in place of CUDA C++, with as many threads, and as many bytes for each, as
    `cuda_vectors`.
    """
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
