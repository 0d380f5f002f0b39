"""Occupancy: it hides latency, and so do more loads in each thread.

Occupancy is the number of warps on an SM, as a share of those it can hold. Blocks take their shared
memory, registers and places for threads until one of the three is used up. Every variant computes
out = 2 in + 1; what differs is how many loads are on their way to memory.

`starved`: each block of 256 threads asks for 96 KiB of shared memory. Two fit the 228 KiB of an
H200's SM, that is 512 of 2,048 threads: 25 %. Each thread has one load in flight: load, wait,
store, next element. By Little's law the bytes in flight are bandwidth times latency: 4 bytes for
each of 512 threads on 132 SMs are 0.27 MB. Measured here on an H200: 0.55 TB/s of loads (and as
much of stores), which is a latency of 0.5 us, and 27 % of the memory's roof. `balanced` is the same
kernel without that request: eight blocks, 100 %, and four times as many loads in flight. It gains
2.7x and not 4x, since the latency rises with the load on the memory, to 0.7 us by the same formula.

Occupancy is no goal by itself. `starved_8_loads` keeps the 96 KiB and 25 %, and each thread loads
eight elements before it stores the first: twice the bytes in flight of `balanced`, at a quarter of
the occupancy. It is 1.16x as fast as `balanced`, and 3.1x as fast as `starved`. `balanced_8_loads`
has both: 1.12x more, at 94 % of the roof (H200). This is why matmul kernels run at 10 to 25 %
occupancy (cuBLAS at 12 % in `shared_memory_tiling`): they spend registers and shared memory on
independent work. Raise occupancy where a kernel waits and cannot have more in flight in each
thread, and leave it alone elsewhere.

The block size matters through the same arithmetic. `--sweep block` goes from 64 to 1,024 threads.
With 96 KiB for each block two fit whatever their size, so `starved` grows from 6 % of the threads
to 100 %, while `balanced` can fill an SM of 2,048 threads at every one of them. On an SM of 1,536
(compute capability 8.6, 8.9, 12.0) a block of 1,024 leaves a third empty, and one block of 96 KiB
fits. Very small blocks cannot fill an SM either: it holds at most 32 of them, on some GPUs 16 or
24. `--sweep shared_kib` makes the same steps with shared memory.

The Triton guide's advice is to balance registers, shared memory and block size. Look at the
occupancy that the compiler's figures allow beside the time, and at the occupancy counted in the
solo run, where the GPU counts it. The machine code of the first two is identical. 96 KiB of shared
memory need compute capability 8.0.
"""

import torch

from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario(
    topic="CUDA C++ kernels",
    needs=("cuda", "cupy"),
    roof="latency",
    clock="device",
    params={"n": 64 * 2**20, "block": 256, "shared_kib": 96},
    smoke={"n": 2**16},
    sweep={"block": (64, 128, 256, 512, 1024), "shared_kib": (8, 16, 32, 64, 96)},
    ladder=True,
    claim="Triton guide: balance registers, shared memory and block size for occupancy",
)
cuda = CudaSource(r"""
template <int LOADS>
__global__ void scaled(const float* __restrict__ in, float* __restrict__ out, long long n) {
    const long long tile = LOADS * blockDim.x;
#pragma unroll 1
    for (long long first = blockIdx.x * tile; first < n; first += gridDim.x * tile) {
        const long long i = first + threadIdx.x;
        if (first + tile <= n) {
            float x[LOADS];
#pragma unroll
            for (int k = 0; k < LOADS; ++k) x[k] = in[i + k * blockDim.x];
#pragma unroll
            for (int k = 0; k < LOADS; ++k) out[i + k * blockDim.x] = 2.0f * x[k] + 1.0f;
        } else {
#pragma unroll 1
            for (long long j = i; j < n; j += blockDim.x) out[j] = 2.0f * in[j] + 1.0f;
        }
    }
}
""")
_THREADS_PER_SM = 12288  # 6 times 2048 and 8 times 1536: whole waves of blocks on either kind of SM


@scenario.variant
def starved(lab, n, block, shared_kib):
    """A block asks for 96 KiB of shared memory, so that few fit; one load in flight for each
    thread.
    """
    return _scaled(
        lab, n, block, cuda.kernel("scaled<1>", threads=block, shared_bytes=shared_kib * 1024)
    )


@scenario.variant
def balanced(lab, n, block):
    """The same kernel without shared memory: as many threads as an SM holds."""
    return _scaled(lab, n, block, cuda.kernel("scaled<1>", threads=block))


@scenario.variant
def starved_8_loads(lab, n, block, shared_kib):
    """The occupancy of `starved`, with eight loads in flight for each thread."""
    return _scaled(
        lab, n, block, cuda.kernel("scaled<8>", threads=block, shared_bytes=shared_kib * 1024)
    )


@scenario.variant
def balanced_8_loads(lab, n, block):
    """Full occupancy and eight loads in flight."""
    return _scaled(lab, n, block, cuda.kernel("scaled<8>", threads=block))


def _scaled(lab, n, block, kernel):
    blocks = max(1, (lab.sms or 2) * _THREADS_PER_SM // block)
    data = torch.randn(n, device=lab.device)
    out = torch.empty_like(data)

    def step():
        kernel(blocks, data, out, n)
        return out

    return Work(step, bytes=8 * n, flops=2 * n, dtype="fp32", inputs=data)
