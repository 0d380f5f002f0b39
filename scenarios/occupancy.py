"""Occupancy: it hides latency, and so do more loads in each thread.

**In short:** memory is busy when enough bytes are under way, whether many threads ask for a few or few threads ask for many.

```text
one SM of an H200: places for 2,048 threads, a cell is 64 of them

                                  threads         loads under way
starved          ████████························   512 x 1 =    512
balanced         ████████████████████████████████ 2,048 x 1 =  2,048
starved_8_loads  ████████························   512 x 8 =  4,096
balanced_8_loads ████████████████████████████████ 2,048 x 8 = 16,384

                 █ 64 resident threads   · places left empty
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `starved` | each block asks for 96 KiB of shared memory | baseline, 486 us, 27 % of the memory's roof | two blocks fit into 228 KiB: 25 % occupancy |
| `balanced` | the same code without that request | 2.7x | eight blocks, 100 % occupancy, 4 times the loads |
| `starved_8_loads` | 96 KiB again; a thread loads 8 elements before it stores one | 1.16x over `balanced`, 3.1x over `starved` | 25 % occupancy, and twice the bytes under way of `balanced` |
| `balanced_8_loads` | full occupancy and 8 loads | 1.12x more, 94 % of the roof | memory is busy: more under way only waits longer |

## What limits occupancy

Occupancy is the number of warps on an SM, as a share of those that it can hold. Blocks take shared
memory, registers and places for threads. The one that is used up first sets the number of blocks.

## Why bytes under way count

All variants compute out = 2 in + 1. By Little's law:

    bytes under way = bandwidth * latency
    starved: 512 threads * 132 SMs * 4 bytes = 0.27 MB = 0.55 TB/s * 0.5 us

The 0.55 TB/s are loads; stores add as much. With `balanced` the latency rises to 0.7 us by the same
formula. That is why four times the threads gain less than 4x.

## Where more occupancy does not help

Occupancy is no goal by itself. Matmul kernels run at 10 to 25 % (cuBLAS at 12 % in
`shared_memory_tiling`): they spend registers and shared memory on independent work. Raise occupancy
where a kernel waits and a thread cannot have more under way.

## Block size

`--sweep block` goes from 64 to 1,024 threads. With 96 KiB a block, two fit whatever their size:
`starved` grows from 6 % of the threads to 100 %. `balanced` fills 2,048 places at every size. With
1,536 (compute capability 8.6, 8.9, 12.0) a block of 1,024 leaves a third empty, and one block of
96 KiB fits. An SM holds at most 32 blocks, on some GPUs 16 or 24, so very small blocks cannot fill
it. `--sweep shared_kib` makes the same steps with shared memory.

The Triton guide advises to balance registers, shared memory and block size. Judge by the time: the
first two have identical machine code. 96 KiB need compute capability 8.0.
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
    terms=("latency hiding", "little's law", "shared memory", "resident warps", "ilp"),
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
    """A block asks for 96 KiB of shared memory, so that few fit an SM; each thread has one load
    under way.
    """
    return _scaled(
        lab, n, block, cuda.kernel("scaled<1>", threads=block, shared_bytes=shared_kib * 1024)
    )


@scenario.variant
def balanced(lab, n, block):
    """The kernel of `starved` without shared memory: as many threads as an SM holds."""
    return _scaled(lab, n, block, cuda.kernel("scaled<1>", threads=block))


@scenario.variant
def starved_8_loads(lab, n, block, shared_kib):
    """The occupancy of `starved`, with eight loads under way for each thread, not one."""
    return _scaled(
        lab, n, block, cuda.kernel("scaled<8>", threads=block, shared_bytes=shared_kib * 1024)
    )


@scenario.variant
def balanced_8_loads(lab, n, block):
    """The full occupancy of `balanced` and the eight loads of `starved_8_loads`."""
    return _scaled(lab, n, block, cuda.kernel("scaled<8>", threads=block))


def _scaled(lab, n, block, kernel):
    blocks = max(1, (lab.sms or 2) * _THREADS_PER_SM // block)
    data = torch.randn(n, device=lab.device)
    out = torch.empty_like(data)

    def step():
        kernel(blocks, data, out, n)
        return out

    return Work(step, bytes=8 * n, flops=2 * n, dtype="fp32", inputs=data)
