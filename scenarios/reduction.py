"""Reduction: a sum is one read of memory, if its threads seldom wait for one another.

**In short:** additions to one address wait for one another; a tree of additions costs so little that only reading the array counts.

```text
eight threads, each with a sum of its own:   a  b  c  d  e  f  g  h

atomics       one address ◀ a ◀ b ◀ c ◀ d ◀ e ◀ f ◀ g ◀ h  8 in turn

shared_tree   a   b   c   d   e   f   g   h
   step 1    +e  +f  +g  +h                 4 additions at once
   step 2    +c  +d                         2 at once
   step 3    +b                             1, and a holds the sum

     after each step: shared_tree a barrier, warp_shuffle none
```

| variant | what changes | expected (H100) | why |
|---|---|---|---|
| `atomics` | each thread adds its sum to one number by atomicAdd | baseline, 14.9 ms, 1 % of the memory's roof | 8 million additions to one address wait for one another |
| `shared_tree` | the sums of a block meet in a tree in shared memory | 81x, 184 us, 96 % of the roof | additions of a step run at once; one number a block is written |
| `warp_shuffle` | threads of a warp read each other's registers | 82x; 1.01x over the tree | one barrier; fewer instructions, the same bytes |
| `vectorized` | 16-byte loads, four under way; few blocks | 84x; 1.02x over `warp_shuffle`; 99 % of the roof | one tree for each of a few blocks, not one for every 16 KiB |
| `in_triton` | the same in ten lines of Triton, by `tl.sum` | 84x, the *same* as `vectorized` | the same loads, the same roof |
| `torch_sum` | the library's kernel, for scale | 181 us, 98 % of the roof | reads each byte once, too |

## What limits a sum

All variants add up the same n floats into one: one FLOP for 4 bytes. So reading the array once is
the limit, and whatever comes near the memory's bandwidth is as fast as a sum can be. What differs
is how millions of partial sums, one for each 16 elements, become one.

## Why atomics are slow

All atomics go to one address, and the L2 cache carries them out one after the other:

    14.9 ms / 8.4 million threads = 1.8 ns, about 3.5 cycles of the SMs

They come in any order, so with real data the last digits change from run to run. Each addition to a
large number loses digits, too. Here the data are whole numbers, whose sums are exact in any order.

In the other variants each block writes one number, and a second launch with a single block adds
those. The order is fixed: every run gives the same result.

## Where it does not help

Shuffles save instructions and barriers (one in place of one for each step). A block's tree mostly
hides behind other blocks' loads. With short blocks the trees weigh more: `--sweep per_thread`. The
second launch adds some microseconds, which a small array would notice.

An H200's memory is faster, so the rest shows more: tree 105x, shuffles 1.05x over it, `vectorized`
1.08x more. It reads 4.32 TB/s there, `in_triton` 0.985x of that, `torch_sum` 4.16 TB/s.

The Triton guide shows the pattern without a figure. Look at the bandwidth, and at RED (atomics),
BAR (barriers) and SHFL (shuffles) in the machine code.
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
    topic="CUDA C++ kernels",
    needs=("cuda", "cupy"),
    roof="device memory",
    clock="device",
    params={"n": 128 * 2**20, "block": 256, "per_thread": 16},
    smoke={"n": 100_003},
    sweep={"per_thread": (4, 16, 64, 256), "block": (64, 128, 256, 512, 1024)},
    ladder=True,
    claim="Triton guide: the reduction pattern, without a figure",
    no_effect_reason="the loads take longer than the tree, which other blocks' loads hide",
    terms=("warp shuffle", "atomics", "atomicadd"),
)
cuda = CudaSource(r"""
// What one thread adds up: every blockDim.x-th element of the piece that belongs to its block.
__device__ float own_sum(const float* __restrict__ in, long long n, int per_thread) {
    const long long piece = (long long)blockDim.x * per_thread, begin = blockIdx.x * piece;
    const int size = min(n - begin, piece);
    float sum = 0;
#pragma unroll 4
    for (int i = 0; i < per_thread; i++) {
        const int at = i * blockDim.x + threadIdx.x;
        sum += at < size ? in[begin + at] : 0;
    }
    return sum;
}

__global__ void atomics(const float* __restrict__ in, float* __restrict__ out, long long n, int per_thread) {
    atomicAdd(out, own_sum(in, n, per_thread));
}

// blockDim.x is a power of two.
__global__ void shared_tree(const float* __restrict__ in, float* __restrict__ out, long long n, int per_thread) {
    __shared__ float sums[1024];
    sums[threadIdx.x] = own_sum(in, n, per_thread);
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}

__device__ float warp_sum(float sum) {
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_down_sync(0xffffffff, sum, lanes);
    return sum;
}

// For thread 0. blockDim.x is a multiple of 32.
__device__ float block_sum(float sum) {
    __shared__ float sums[32];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    return threadIdx.x < 32 ? warp_sum(threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0) : 0;
}

__global__ void warp_shuffle(const float* __restrict__ in, float* __restrict__ out, long long n, int per_thread) {
    const float sum = block_sum(own_sum(in, n, per_thread));
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__device__ float across(float4 four) { return four.x + four.y + (four.z + four.w); }

__global__ void vectorized(const float* __restrict__ in, float* __restrict__ out, long long n) {
    const float4* fours = reinterpret_cast<const float4*>(in);
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x, step = (long long)gridDim.x * blockDim.x;
    float sum = first < n % 4 ? in[n - 1 - first] : 0;
    long long i = first;
#pragma unroll 1
    for (; i + 3 * step < n / 4; i += 4 * step) {
        const float4 p = fours[i], q = fours[i + step], r = fours[i + 2 * step], s = fours[i + 3 * step];
        sum += across(p) + across(q) + (across(r) + across(s));
    }
#pragma unroll 1
    for (; i < n / 4; i += step) sum += across(fours[i]);
    sum = block_sum(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
""")


@scenario.variant
def atomics(lab, n, block, per_thread):
    """One atomicAdd to the result for each thread, which has added up `per_thread` elements. The
    baseline.
    """
    kernel, (data, out), blocks = (
        cuda.kernel("atomics", threads=block),
        _data(lab, n),
        _blocks(n, block * per_thread),
    )
    return _work(lambda: kernel(blocks, data, out.zero_(), n, per_thread), data, out)


@scenario.variant
def shared_tree(lab, n, block, per_thread):
    """A tree in shared memory in place of atomics, with a barrier at each level; a second launch
    adds what the blocks leave.
    """
    first, second = (
        cuda.kernel("shared_tree", threads=block),
        cuda.kernel("shared_tree", threads=1024),
    )
    return _in_two(lab, n, _blocks(n, block * per_thread), first, second, per_thread)


@scenario.variant
def warp_shuffle(lab, n, block, per_thread):
    """The tree by shuffles within each warp, in place of shared memory: one barrier."""
    first, second = (
        cuda.kernel("warp_shuffle", threads=block),
        cuda.kernel("warp_shuffle", threads=1024),
    )
    return _in_two(lab, n, _blocks(n, block * per_thread), first, second, per_thread)


@scenario.variant
def vectorized(lab, n, block):
    """The shuffles, with 16-byte loads and few blocks, each of which goes through the array."""
    first, second = (
        cuda.kernel("vectorized", threads=block),
        cuda.kernel("warp_shuffle", threads=1024),
    )
    return _in_two(
        lab, n, min((lab.sms or 2) * 1024 // block, _blocks(n, 4 * block)), first, second
    )


@scenario.variant(needs=("triton",))
def in_triton(lab, n, block):
    """Triton in place of CUDA C++: each program goes through the array with as many threads and
    loads, and tl.sum is the tree.
    """
    (data, out), programs = (
        _data(lab, n),
        min((lab.sms or 2) * 1024 // block, _blocks(n, 16 * block)),
    )
    parts = torch.empty(programs, device=lab.device)

    def step():
        _sum[(programs,)](data, parts, n, BLOCK=16 * block, num_warps=block // 32)
        _sum[(1,)](parts, out, programs, BLOCK=1024, num_warps=4)

    return _work(step, data, out)


if triton is not None:

    @triton.jit
    def _sum(data, out, n, BLOCK: tl.constexpr):
        """Program p of P adds up every P-th block of elements, from the p-th on."""
        sums = tl.zeros((BLOCK,), tl.float32)
        for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
            place = start + tl.arange(0, BLOCK)
            sums += tl.load(data + place, mask=place < n, other=0.0)
        tl.store(out + tl.program_id(0), tl.sum(sums, axis=0))


@scenario.variant(against=None)
def torch_sum(lab, n):
    """torch.sum: for scale, not compared."""
    data, out = _data(lab, n)
    return _work(lambda: torch.sum(data, 0, keepdim=True, out=out), data, out)


def _blocks(n, elements):
    return -(-n // elements)


def _in_two(lab, n, blocks, first, second, *per_thread):
    (data, out), parts = _data(lab, n), torch.empty(blocks, device=lab.device)

    def step():
        first(blocks, data, parts, n, *per_thread)
        second(1, parts, out, blocks, _blocks(blocks, 1024))

    return _work(step, data, out)


def _data(lab, n):
    # The sum is then about four times as large as it would be by chance, and never near zero. Whole
    # numbers below 2^24 are exact in fp32, in any order: 8 million atomics of others round
    # themselves off by some 5e-5 of the sum, in another way in every run.
    data = torch.randn(n, device=lab.device).mul_(2).add_(8 / n**0.5).round_()
    return data, torch.empty(1, device=lab.device)


def _work(step, data, out):
    return Work(
        step,
        bytes=data.nbytes,
        flops=len(data),
        dtype="fp32",
        tolerance=1e-6,  # an element that is left out shows
        inputs=data,
        output=out,
    )
