"""Vectorized loads: 16 bytes in one instruction keep the memory busier than 4.

A warp's load of one float per lane asks for 128 bytes, of a float4, four floats in one instruction,
for 512. The sectors are the same, all used in full in either case (see `coalescing`). What changes
is that a quarter of the instructions does it, and that each thread has four times the bytes under
way. By Little's law memory is saturated when the bytes under way are bandwidth x latency: at 4.8
TB/s, half of which is reads in a copy, and some 700 ns, about 1.7 MB of loads. A full H200 has
270,000 threads at a time. With one float each that is 1.1 MB at most, which is too little, and with
a float2 or float4 it is 2 or 4 MB.

Measured here on an H200: `one_float` copies at 2.67 TB/s, 63 % of the roof, `one_float2` at 3.82
TB/s (90 %) and `one_float4` at 4.24 TB/s (100 %), 1.59x as fast as the first. Threads that copy 4
bytes are soon done, and in the solo run only 69 % of the places for them were taken. So expect a
gain where few bytes are under way, and none once the memory is saturated: a card with 0.5 TB/s
should be near its roof with single floats.

`four_float4` loads four float4s before it stores the first, and needs a quarter of the blocks. It
shows that there is nothing left to gain: it is 5 % slower than `one_float4` (H200). `torch_copy` is
the driver's copy of device memory, for scale, 4.20 TB/s. The bytes under way decide, not the number
of threads, which is why few threads with long loads can do what many with short ones do (see
`occupancy`).

A float4 has to lie at a multiple of 16 bytes, or the kernel fails with "misaligned address".
Tensors begin at such a place, slices of them need not: `x[1:]` begins 4 bytes further. `misaligned`
copies the same numbers, from and to places that lie `offset` floats behind an aligned one. Its
kernel copies a head of up to three floats one by one, so that the rest is aligned, and a tail where
fewer than four are left. It is 2 % slower than `one_float4` (H200): 512 bytes that start in the
middle of a sector touch 17 sectors in place of 16. This works where source and destination are
equally misaligned, as with the same slice of two tensors. Otherwise one of the two must be read or
written by smaller pieces, whatever the head.

The 122 -> 242 GB/s of the performance basics are rates of a device, or of a size, where latency was
the limit; the quick-start guide has 1.28x. Look at the machine code: LDG.E, LDG.E.64 and LDG.E.128.
The compiler does not merge loads of floats into one of 16 bytes by itself, as it does not know how
a pointer is aligned.
"""

import torch

from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario(
    topic="CUDA C++ kernels",
    needs=("cuda", "cupy"),
    roof="device memory",
    clock="device",
    params={"n": 128 * 2**20, "block": 256, "offset": 1},
    smoke={"n": 100_003},
    sweep={"block": (64, 128, 256, 512, 1024), "offset": (0, 1, 2, 4)},
    claim="performance basics: 122 -> 242 GB/s; quick-start guide: 1.28x",
    no_effect_reason="the memory is already saturated",
    ladder=True,
    terms=("float4", "ld.128", "bytes in flight"),
)
cuda = CudaSource(r"""
template <typename Vector>
__device__ void copy_one(const float* in, float* out, long long first, long long n) {
    constexpr int WIDTH = sizeof(Vector) / sizeof(float);
    if (first + WIDTH <= n) {
        *reinterpret_cast<Vector*>(out + first) = *reinterpret_cast<const Vector*>(in + first);
    } else {
#pragma unroll 1
        for (long long i = first; i < n; i++) out[i] = in[i];
    }
}

template <typename Vector>
__global__ void copy(const float* __restrict__ in, float* __restrict__ out, long long n) {
    const long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    copy_one<Vector>(in, out, t * (sizeof(Vector) / sizeof(float)), n);
}

// Each load of a warp is coalesced: the vectors of one thread are a block apart.
template <int COUNT>
__global__ void copy_several(const float* __restrict__ in, float* __restrict__ out, long long n) {
    const long long begin = (long long)blockIdx.x * blockDim.x * COUNT + threadIdx.x;
    if (4 * (begin + (COUNT - 1) * blockDim.x + 1) <= n) {
        const float4* from = reinterpret_cast<const float4*>(in) + begin;
        float4* to = reinterpret_cast<float4*>(out) + begin;
        float4 held[COUNT];
#pragma unroll
        for (int k = 0; k < COUNT; k++) held[k] = from[k * blockDim.x];
#pragma unroll
        for (int k = 0; k < COUNT; k++) to[k * blockDim.x] = held[k];
    } else {
#pragma unroll 1
        for (int k = 0; k < COUNT; k++) copy_one<float4>(in, out, 4 * (begin + k * blockDim.x), n);
    }
}

// Both begin at the same place between two multiples of 16 bytes.
__global__ void copy_misaligned(const float* __restrict__ in, float* __restrict__ out, long long n) {
    const long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long beyond = reinterpret_cast<unsigned long long>(in) / sizeof(float) % 4;
    const long long head = min((4 - beyond) % 4, n);
    if (t < head) out[t] = in[t];
    copy_one<float4>(in + head, out + head, 4 * t, n - head);
}
""")


@scenario.variant
def one_float(lab, n, block):
    """4 bytes for each thread."""
    return _copied(lab, n, cuda.kernel("copy<float>", threads=block), block)


@scenario.variant
def one_float2(lab, n, block):
    """8 bytes for each thread."""
    return _copied(lab, n, cuda.kernel("copy<float2>", threads=block), 2 * block)


@scenario.variant
def one_float4(lab, n, block):
    """16 bytes for each thread, the longest load of a thread before Blackwell."""
    return _copied(lab, n, cuda.kernel("copy<float4>", threads=block), 4 * block)


@scenario.variant
def four_float4(lab, n, block):
    """Four loads of 16 bytes for each thread, all under way before the first store."""
    return _copied(lab, n, cuda.kernel("copy_several<4>", threads=block), 16 * block)


@scenario.variant(against="one_float4")
def misaligned(lab, n, block, offset):
    """One float4 for each thread, from a misaligned place on: a head and a tail of single
    floats.
    """
    return _copied(lab, n, cuda.kernel("copy_misaligned", threads=block), 4 * block, offset)


@scenario.variant(against=None)
def torch_copy(lab, n):
    """The driver's copy, for scale."""
    data, out = torch.rand(n, device=lab.device), torch.empty(n, device=lab.device)
    return Work(lambda: out.copy_(data), bytes=8 * n, inputs=data)


def _copied(lab, n, kernel, per_block, offset=0):
    data, out = (torch.empty(offset + n, device=lab.device)[offset:] for _ in range(2))
    data.copy_(torch.rand(n, device=lab.device))

    def step():
        kernel(-(-n // per_block), data, out, n)
        return out

    return Work(step, bytes=8 * n, inputs=data)
