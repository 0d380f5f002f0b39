"""Memory hierarchy: the same lines from each level, one after the other or all at once.

**In short:** farther memory answers later, and only many requests under way at a time get its bandwidth.

```text
                time ───────────────────────────────▶
chase  l1       █▒█▒█▒█▒█▒█▒█▒        each address is in
       l2       █▒▒▒█▒▒▒█▒▒▒          the line before
       memory   █▒▒▒▒▒▒▒▒▒▒▒█▒▒▒▒▒▒
stream memory   █▒▒▒▒▒▒▒▒▒▒▒          addresses are known:
                 █▒▒▒▒▒▒▒▒▒▒▒         lines overlap
                  █▒▒▒▒▒▒▒▒▒▒▒
                █ a load begins   ▒ it waits for its line
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `chase_memory` | a chain of lines in random order, larger than the caches | baseline, 354 ns a load | each load waits for the memory, and often for the address translation too |
| `chase_host` | the chain lies in page-locked memory of the host | 0.21x, 1.66 us (CUDA alone) | each load crosses the link (PCIe) and back |
| `chase_l3` | a footprint that fits the last level | faster (CPU alone) | a GPU has two levels of cache |
| `chase_l2` | it fits the L2 | faster | the second level, on the chip |
| `chase_l1` | 16 KiB: it fits the L1 | 13x, 27 ns | the first level, in the core or SM |
| `stream_memory` | the lines of `chase_memory` in the order of their addresses | 40x | no address waits for a line, so many lines are under way |
| `stream_host` | those of `chase_host` | much faster than `chase_host` (CUDA alone) | the same; the link is the limit |
| `stream_l3` | those of `chase_l3` | faster than `stream_memory` (CPU alone) | a cache has more bandwidth, too |
| `stream_l2` | those of `chase_l2` | 99x | as `stream_l3` |
| `stream_l1` | those of `chase_l1` | 239x | each SM has an L1 of its own; on a core the additions take as long |

## What is measured

Every variant reads equally many lines of 64 bytes and adds up their 16 numbers. The values repeat so
that all sums are the same. `chase` follows chains: the first number of a line says where the next
line is. A CPU follows one chain on one core, a GPU four on each SM, too few to get in each other's
way. So

    latency = time per line * chains (528 on an H200)

## How many lines have to be under way

    bytes under way = bandwidth * latency

This is Little's law. The ratio of `chase` to `stream` at a level says how many times as many lines
`stream` has under way. A core gets them from out-of-order execution and prefetchers, a GPU from
thousands of threads (`occupancy`, `vectorized_loads`).

## Where it does not help

A linked list, a tree and a hash table are chains. They feel the latency of a level, streams its
bandwidth: from memory to the L1 13x against 239 / 40 = 6x. A smaller footprint speeds them up, and
so do several searches at a time.

## How large the levels are

Of an H200, by NVIDIA's paper on its architecture and by its driver:

    registers         256 KiB on each SM
    L1 and shared     256 KiB on each SM
    L2                60 MiB
    memory            140 GiB
    host              what it has, over PCIe

Another GPU's memory is between the last two: NVLink carries 450 GB/s each way (`collectives`).

## What is left out

Registers and shared memory are not walked through: shared memory is the same SRAM as a GPU's L1
(`shared_memory_tiling`). Bandwidth is 64 bytes times the lines per second.

Footprints are parameters, powers of two. Where the last level of a CPU holds 64 MiB, `--set
memory_mib=256` with `--set steps=4194304` goes beyond it.
"""

import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch

from gpulab import KiB, MiB, Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario(
    topic="data movement",
    roof="latency",
    clock="device",
    params={"l1_kib": 16, "l2_kib": 4096, "l3_kib": 4096, "memory_mib": 512, "steps": 2**15},
    cpu={"l2_kib": 256, "memory_mib": 64, "steps": 2**20},
    smoke={"l2_kib": 64, "l3_kib": 256, "memory_mib": 1, "steps": 2**12},
    sweep={"memory_mib": (1, 4, 16, 64, 256)},
    per="item",
    item="line",
    claim=(
        "performance basics: each level of the memory hierarchy is slower and larger than the one "
        "before"
    ),
    no_effect_reason=(
        "both footprints fit the same level, or the additions take as long as the loads"
    ),
    terms=("pointer chasing", "memory latency", "cache levels", "dram", "little's law", "l1"),
)
WORDS = 16  # of 32 bits in a line of 64 bytes
REPEATS = 64  # lines until the values begin again
CHAINS = 4  # on each SM
CACHE, MEMORY, HOST = "cache", "memory", "host"
cuda = CudaSource(r"""
constexpr int WORDS = 16;

// 16 threads follow one chain.
__global__ void chase(const unsigned* __restrict__ lines, const unsigned* __restrict__ starts,
                      unsigned* __restrict__ sums, long long steps) {
    unsigned at = starts[blockIdx.x], sum = 0;
#pragma unroll 4
    for (long long k = 0; k < steps; ++k) {
        const unsigned* line = lines + at;
        at = line[0];
        sum += line[threadIdx.x];
    }
    sums[blockIdx.x * WORDS + threadIdx.x] = sum;
}

__global__ void stream(const uint4* __restrict__ lines, unsigned* __restrict__ sums, long long count,
                       long long mask) {
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long threads = (long long)gridDim.x * blockDim.x;
    unsigned sum = 0;
#pragma unroll 4
    for (long long i = first; i < count; i += threads) {
        const uint4 words = lines[i & mask];
        sum += words.x + words.y + words.z + words.w;
    }
    sums[first] = sum;
}
""")
CPP = r"""
extern "C" int chase(const unsigned* lines, unsigned at, long long steps) {
    unsigned sums[16] = {}, sum = 0;
    for (long long k = 0; k < steps; ++k) {
        const unsigned* line = lines + at;
        for (int word = 0; word < 16; ++word) sums[word] += line[word];
        at = line[0];
    }
    for (int word = 0; word < 16; ++word) sum += sums[word];
    return sum;
}

extern "C" int stream(const unsigned* lines, long long footprint, long long count) {
    unsigned sum = 0;
    for (; count > 0; count -= footprint) {
        const long long words = count < footprint ? count : footprint;
        for (long long i = 0; i < words; ++i) sum += lines[i];
    }
    return sum;
}
"""


@scenario.variant
def chase_memory(lab, memory_mib, steps):
    """A chain of lines in random order, in a footprint that is larger than the caches."""
    return _chase(lab, memory_mib * MiB, steps, lambda: cuda.kernel("chase", threads=16), MEMORY)


@scenario.variant(needs=("cuda",))
def chase_host(lab, memory_mib, steps):
    """The same chain in page-locked memory of the host, against that of the GPU."""
    return _chase(lab, memory_mib * MiB, steps, lambda: cuda.kernel("chase", threads=16), HOST)


@scenario.variant
def chase_l3(lab, l3_kib, steps):
    """The chain in a footprint that fits the last level of a CPU's cache, against memory."""
    _require_l3(lab)
    return _chase(lab, l3_kib * KiB, steps, lambda: cuda.kernel("chase", threads=16))


@scenario.variant
def chase_l2(lab, l2_kib, steps):
    """The chain in a footprint that fits the L2, against memory."""
    return _chase(lab, l2_kib * KiB, steps, lambda: cuda.kernel("chase", threads=16))


@scenario.variant(against="chase_l2")
def chase_l1(lab, l1_kib, steps):
    """The chain in a footprint that fits the L1, against the L2."""
    return _chase(lab, l1_kib * KiB, steps, lambda: cuda.kernel("chase", threads=16))


@scenario.variant
def stream_memory(lab, memory_mib, steps):
    """The lines of the baseline in the order of their addresses, so that many are under way."""
    return _stream(lab, memory_mib * MiB, steps, lambda: cuda.kernel("stream", threads=256), MEMORY)


@scenario.variant(needs=("cuda",), against="chase_host")
def stream_host(lab, memory_mib, steps):
    """The lines in memory of the host in the order of their addresses, against their chain."""
    return _stream(lab, memory_mib * MiB, steps, lambda: cuda.kernel("stream", threads=256), HOST)


@scenario.variant(against="stream_memory")
def stream_l3(lab, l3_kib, steps):
    """A footprint that fits the last level of a CPU's cache in order, against memory in order."""
    _require_l3(lab)
    return _stream(lab, l3_kib * KiB, steps, lambda: cuda.kernel("stream", threads=256))


@scenario.variant(against="stream_memory")
def stream_l2(lab, l2_kib, steps):
    """A footprint that fits the L2 in order, against memory in order."""
    return _stream(lab, l2_kib * KiB, steps, lambda: cuda.kernel("stream", threads=256))


@scenario.variant(against="stream_l2")
def stream_l1(lab, l1_kib, steps):
    """A footprint that fits the L1 in order, against the L2 in order."""
    return _stream(lab, l1_kib * KiB, steps, lambda: cuda.kernel("stream", threads=256))


def _require_l3(lab):
    if lab.device.type == "cuda":
        lab.skip("a GPU has two levels of cache: see the L2")


def _chase(lab, footprint, steps, make, place=CACHE):
    lines, chain = _lines(lab, footprint, place)
    if lab.device.type == "cpu":
        function, out = _on_cpu(lab).chase, torch.empty((), dtype=torch.int32)
        first = int(chain[0])
        return _work(lambda: out.fill_(function(lines.data_ptr(), first, steps)), lines, steps)
    kernel, chains = _made(lab, make), CHAINS * max(lab.sms, 1)
    starts = chain[torch.arange(chains, device=lab.device) * len(chain) // chains].int()
    sums = torch.empty(chains * WORDS, dtype=torch.int32, device=lab.device)

    def step():
        kernel(chains, lines, starts, sums, steps)
        return sums.sum(dtype=torch.int32)

    return _work(step, lines, chains * steps, place)


def _stream(lab, footprint, steps, make, place=CACHE):
    lines, _ = _lines(lab, footprint, place)
    if lab.device.type == "cpu":
        function, out = _on_cpu(lab).stream, torch.empty((), dtype=torch.int32)
        count = steps * WORDS
        return _work(
            lambda: out.fill_(function(lines.data_ptr(), lines.numel(), count)), lines, steps
        )
    kernel, blocks = _made(lab, make), 7 * max(lab.sms, 1)
    read = CHAINS * max(lab.sms, 1) * steps
    sums = torch.empty(blocks * 256, dtype=torch.int32, device=lab.device)

    def step():
        kernel(blocks, lines, sums, read * WORDS // 4, lines.numel() // 4 - 1)
        return sums.sum(dtype=torch.int32)

    return _work(step, lines, read, place)


def _lines(lab, footprint, place):
    """Lines of a chain in random order, and where in it each begins, in words."""
    count = footprint // 4 // WORDS
    if count % REPEATS or count & (count - 1):
        lab.skip("a footprint is a power of two, and 4 KiB or more")
    values = torch.randint(2**16, (REPEATS, WORDS), dtype=torch.int32, device=lab.device)
    # It goes through all residues of a line's number, so that REPEATS lines in a row, along the
    # chain or in memory, have the same sum in every footprint.
    groups = torch.rand(count // REPEATS, REPEATS, device=lab.device).argsort(0)
    residues = torch.randperm(REPEATS, device=lab.device)
    chain = (groups * REPEATS + residues).view(-1) * WORDS
    following = torch.empty(count, dtype=torch.int32, device=lab.device)
    following[chain // WORDS] = chain.roll(-1).int()
    lines = values.repeat(count // REPEATS, 1)
    lines[:, 0] = following
    lines[:, -1] -= following  # so that a line has the sum of its values
    if place == HOST and lab.device.type == "cuda":
        lines = lines.cpu().pin_memory()
    return lines, chain


def _made(lab, make):
    try:
        return make()
    except ImportError as error:
        lab.skip(f"kernels of a GPU need CuPy and NVRTC ({error})")


def _on_cpu(lab):
    compiler = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")
    if compiler is None:
        lab.skip("the loop of a CPU needs a C++ compiler, such as g++")
    return _compiled(compiler)


@cache
def _compiled(compiler):
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "walk.cpp"), Path(folder, "walk.so")
        source.write_text(CPP)
        options = ["-O3", "-march=native", "-shared", "-fPIC"]
        subprocess.run([compiler, *options, source, "-o", library], check=True)
        loaded = ctypes.CDLL(str(library))
    loaded.chase.argtypes = ctypes.c_void_p, ctypes.c_uint, ctypes.c_longlong
    loaded.stream.argtypes = ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong
    loaded.chase.restype = loaded.stream.restype = ctypes.c_int
    return loaded


def _work(step, lines, count, place=CACHE):
    return Work(
        step,
        bytes=count * 4 * WORDS if place == MEMORY else None,
        items=count,
        inputs=lines,
    )
