"""The work that ceilings are measured by: copies, products, chains of arithmetic, empty launches,
transfers.

Compiled by NVRTC through CuPy, where that is installed.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import util
from itertools import pairwise
from time import perf_counter
from typing import Any

import torch

from gpulab.core.findings import Finding
from gpulab.core.machine import Device
from gpulab.core.payloads import (
    CACHE,
    HOST_LINKS,
    HOST_TO_DEVICE,
    LAUNCH,
    MATRIX,
    MEMORY,
    PAGE_FAULT,
    VECTOR,
)
from gpulab.engine.processes.device import free_memory
from gpulab.features.roofline.ceilings import TENSOR_DTYPES
from gpulab.features.roofline.findings import (
    additions,
    additions_on_device_clock,
    arrays,
    convolution,
    first_touches,
    fma_chains,
    graph_of_additions,
    host_clock,
    pinned_for_one_copy,
    product,
    repeated_reads,
)
from gpulab.scenario import GiB, KiB, MiB, Work

THREADS = 256
BLOCKS_PER_SM = 8
CHAINS = 8
"""Independent accumulators per thread: an FMA's latency is 4 clocks."""
_ITERATIONS = 4096

SOURCE = r"""
template <typename T> __device__ void chain(T* out, T a, T b, int iterations) {
    T x[8];
    #pragma unroll
    for (int k = 0; k < 8; ++k) x[k] = T(threadIdx.x + k);
    #pragma unroll 8
    for (int i = 0; i < iterations; ++i) {
        #pragma unroll
        for (int k = 0; k < 8; ++k) x[k] = fma(x[k], a, b);
    }
    T sum = 0;
    #pragma unroll
    for (int k = 0; k < 8; ++k) sum += x[k];
    if (sum == T(-1)) *out = sum;  // never: it keeps the compiler from leaving the loop out
}
extern "C" __global__ void fma_fp32(float* out, float a, float b, int n) {
    chain<float>(out, a, b, n);
}
extern "C" __global__ void fma_fp64(double* out, double a, double b, int n) {
    chain<double>(out, a, b, n);
}

extern "C" __global__ void read_l2(
    const uint4* data, unsigned int* out, long long count, int passes
) {
    uint4 sum = make_uint4(0, 0, 0, 0);
    const long long stride = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (int pass = 0; pass < passes; ++pass) {
        #pragma unroll 8
        for (long long i = first; i < count; i += stride) {
            const uint4 value = __ldcg(data + i);  // past L1
            sum.x ^= value.x; sum.y ^= value.y; sum.z ^= value.z; sum.w ^= value.w;
        }
        // Another pass may not be folded into this one.
        asm volatile("" : "+r"(sum.x), "+r"(sum.y), "+r"(sum.z), "+r"(sum.w) :: "memory");
    }
    if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x9e3779b9u) *out = sum.x;
}
"""


def available() -> bool:
    return util.find_spec("cupy") is not None


def fma_chain(device: torch.device, info: Device, dtype: str) -> Probe:
    """Fused multiply-adds that need nothing but registers, on all SMs."""
    import numpy as np

    scalar: Any = np.float32 if dtype == "fp32" else np.float64
    iterations = _ITERATIONS if dtype == "fp32" else _ITERATIONS // 8  # cards have few fp64 units
    kernel = _compiled(f"fma_{dtype}")
    out = torch.zeros(1, dtype=_DTYPES[dtype], device=device)
    blocks = info.sms * BLOCKS_PER_SM
    arguments = (out.data_ptr(), scalar(0.999), scalar(0.001), np.int32(iterations))

    def step() -> object:
        kernel((blocks,), (THREADS,), arguments)
        return out

    flops = 2 * CHAINS * iterations * blocks * THREADS
    method = fma_chains(chains=CHAINS, blocks=blocks, threads=THREADS)
    return Probe(Work(step), flops, method)


def l2_reads(device: torch.device, info: Device, footprint: int) -> Probe:
    """The same bytes, read again and again in one launch."""
    import numpy as np

    kernel = _compiled("read_l2")
    count = footprint // 16
    data = torch.randint(0, 255, (count * 16,), dtype=torch.uint8, device=device)
    out = torch.zeros(1, dtype=torch.int32, device=device)
    passes = max(1, 4 * GiB // footprint)  # so that a launch's own microseconds do not show
    arguments = (data.data_ptr(), out.data_ptr(), np.int64(count), np.int32(passes))
    blocks = info.sms * BLOCKS_PER_SM

    def step() -> object:
        kernel((blocks,), (THREADS,), arguments)
        return data, out  # alive for as long as the step is

    method = repeated_reads(passes=passes, bytes=footprint)
    return Probe(Work(step), passes * count * 16, method)


def _compiled(name: str) -> Any:
    import cupy

    return cupy.RawModule(code=SOURCE, options=("-std=c++17",)).get_function(name)


_LAUNCHES = 200
_PAGES = 256
_PATTERN = 4096  # drawing a gigabyte of numbers would take longer than moving it
_DTYPES = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "tf32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8": torch.float8_e4m3fn,
    "int8": torch.int8,
}


@dataclass(frozen=True)
class Probe:
    """One way to a ceiling, with its data: `amount` bytes or FLOPs per step; 0 where the time of a
    part counts.

    `clock`: device, wall, or host for what queueing alone costs.
    """

    work: Work
    amount: int
    method: Finding
    clock: str = "device"
    parts: int = 1
    footprint: int = 0
    """Bytes that stay in a cache, if it holds so many; 0 where that is not the question."""
    rests: bool = False
    """Whether the device slows down under it, and gets pauses first: its best is before."""


@dataclass(frozen=True)
class PlannedProbe:
    """A ceiling to measure; `make` builds its probe, which may fail on this device."""

    roof: str
    kind: str
    make: Callable[[], Probe]


def plan(device: torch.device, info: Device, *, brief: bool = False) -> Iterator[PlannedProbe]:
    """All ceilings of a device. `brief`: only extremes, and no footprints that take long."""
    array = array_bytes(device, info)
    on_gpu = device.type == "cuda"
    for kind in ("copy", "update") if brief else ("copy", "triad", "update", "read"):
        yield PlannedProbe(MEMORY, kind, partial(stream, device, kind, array))
    footprints = _footprints(device, info)
    for footprint in footprints[:3] if brief else footprints:
        if not on_gpu:
            for kind in ("copy", "update") if brief else ("copy", "update", "read"):
                array = footprint if kind == "read" else footprint // 2
                yield PlannedProbe(CACHE, kind, partial(stream, device, kind, array))
        elif available():
            yield PlannedProbe(CACHE, "read", partial(l2_reads, device, info, footprint))
    for kind in _kinds(device):
        sizes = [2**power for power in range(11 if on_gpu else 8, 14)]
        make = partial(products_of, device, kind, sizes, 0.06, rests=on_gpu)
        yield PlannedProbe(MATRIX, kind, make)
    if not on_gpu:
        yield PlannedProbe(PAGE_FAULT, "", _first_touches)
        yield PlannedProbe(LAUNCH, "enqueue", partial(_launches, device, "enqueue"))
        return
    if available():
        for kind in ("fp32", "fp64"):
            yield PlannedProbe(VECTOR, kind, partial(fma_chain, device, info, kind))
    for kind in ("enqueue", "spacing", "graph node"):
        yield PlannedProbe(LAUNCH, kind, partial(_launches, device, kind))
    for roof in HOST_LINKS:
        for size in (4 * KiB, MiB, 16 * MiB, 256 * MiB):
            for kind in ("pinned", "pageable"):
                make = partial(_transfers, device, roof, kind, size)
                yield PlannedProbe(roof, f"{kind} {size_name(size)}", make)
        make = partial(_pinned_on_the_spot, device, roof, size)
        yield PlannedProbe(roof, f"pinned on the spot {size_name(size)}", make)


def _footprints(device: torch.device, info: Device) -> list[int]:
    """Bytes to look for in the last-level cache. Of a CPU also far fewer than it should hold.

    A virtual machine reports the cache of a whole socket, and gets a slice of it.
    """
    half = info.l2_bytes // 2
    if device.type == "cuda":
        return [half // 4, half // 2, half] if half else []
    sizes = []
    while half:
        sizes.append(half)
        half = half // 4 if half > 4 * MiB else 0
    return sizes[::-1]


def array_bytes(device: torch.device, info: Device) -> int:
    """Bytes of an array that no cache holds, and that three of fit into memory."""
    if device.type == "cuda":
        return min(GiB, info.memory_bytes // 16)
    # What is smaller is cached somewhere, whatever the system says. A virtual machine may name
    # hundreds of MiB of cache: touching gigabytes takes minutes.
    beyond = min(max(4 * info.l2_bytes, 64 * MiB), 256 * MiB)
    return min(beyond, free_memory() // 16)


def stream(device: torch.device, kind: str, array: int) -> Probe:
    """STREAM's copy and triad (J. D. McCalpin), an update in place, and a read, on fp32 arrays of
    so many bytes.

    A CPU loads the lines that it is going to store to: only the update moves no more than is
    counted.
    """
    count = array // 4
    size = count * 4
    method = arrays(bytes=array)
    pattern = torch.rand(_PATTERN, dtype=torch.float32, device=device)

    def operand() -> torch.Tensor:
        return pattern.repeat(1 + count // _PATTERN)[:count]

    a = operand()
    if kind == "copy":
        return Probe(Work(partial(operand().copy_, a)), 2 * size, method, footprint=2 * array)
    if kind == "triad":
        step = partial(torch.add, a, operand(), alpha=3.0, out=operand())
        return Probe(Work(step), 3 * size, method)
    if kind == "update":
        step = partial(operand().add_, a, alpha=1e-6)
        return Probe(Work(step), 3 * size, method, footprint=2 * array)
    return Probe(Work(partial(torch.sum, a)), size, method, footprint=array)


def _kinds(device: torch.device) -> list[str]:
    """Dtypes with matrix units or instructions. No fp16 on a CPU: it is emulated there."""
    if device.type == "cpu":
        return ["fp64", "fp32", "bf16", "int8"]
    capability = torch.cuda.get_device_capability(device)
    of_tensor_cores = [kind for kind, (since, _) in TENSOR_DTYPES.items() if capability >= since]
    return ["fp64", "fp32", *of_tensor_cores]


def product_of(device: torch.device, kind: str, size: int, *, rests: bool = False) -> Probe:
    """A product of two random matrices of this size: zeros would run faster."""
    work = Work(_multiply(device, kind, size), context=_tf32 if kind == "tf32" else None)
    return Probe(work, 2 * size**3, product(size=size), rests=rests)


def products_of(
    device: torch.device, kind: str, sizes: Sequence[int], most_s: float, *, rests: bool = False
) -> Probe:
    """The largest product of these sizes, which grow, that should take no longer, else the first;
    in fp32 of a CPU a convolution, where that is faster: it may be of another library (on an EPYC
    oneDNN's reached 6 % more than MKL's product).
    """
    probe = product_of(device, kind, sizes[0], rests=rests)
    for before, size in pairwise(sizes):
        context = probe.work.context or nullcontext
        with context():
            # the first sets up, any may be disturbed
            step_s = min(_step_s(device, probe.work.step) for _ in range(4))
        if (size / before) ** 3 * step_s > most_s:
            break
        probe = product_of(device, kind, size, rests=rests)
    if device.type != "cpu" or kind != "fp32":
        return probe
    return max(probe, _convolution(), key=_rate)


def _convolution() -> Probe:
    """A convolution without a border, whose zeros would count as work."""
    channels, side = 64, 32
    last = torch.channels_last
    images = torch.randn(2, channels, side + 2, side + 2, dtype=torch.float32).to(
        memory_format=last
    )
    weight = torch.randn(channels, channels, 3, 3, dtype=torch.float32).to(memory_format=last)
    amount = 2 * len(images) * side**2 * channels**2 * 9
    step = partial(torch.nn.functional.conv2d, images, weight)
    return Probe(Work(step), amount, convolution(channels=channels, side=side))


def _rate(probe: Probe) -> float:
    cpu = torch.device("cpu")
    return probe.amount / min(_step_s(cpu, probe.work.step) for _ in range(4))


def _step_s(device: torch.device, step: Callable[[], object]) -> float:
    started = perf_counter()
    step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return perf_counter() - started


def _multiply(device: torch.device, kind: str, size: int) -> Callable[[], torch.Tensor]:
    dtype = _DTYPES[kind]
    if kind == "int8":
        a, b = (
            torch.randint(-127, 128, (size, size), dtype=dtype, device=device) for _ in range(2)
        )
        return partial(torch._int_mm, a, b if device.type == "cpu" else b.t().contiguous().t())
    a, b = (torch.randn(size, size, dtype=torch.float32, device=device).to(dtype) for _ in range(2))
    if kind == "fp8":
        b = b.t().contiguous().t()  # the hardware's layout
        scale = torch.ones((), dtype=torch.float32, device=device)
        return partial(
            torch._scaled_mm, a, b, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16
        )
    return partial(torch.mm, a, b, out=torch.empty(size, size, dtype=dtype, device=device))


def _first_touches() -> Probe:
    """Memory that is new to the process, a page at a time: what a step pays that allocates."""
    page = mmap.PAGESIZE

    def step() -> None:
        with mmap.mmap(-1, _PAGES * page) as memory:
            memory.madvise(mmap.MADV_NOHUGEPAGE)
            for start in range(0, _PAGES * page, page):
                memory[start] = 1

    return Probe(Work(step), 0, first_touches(pages=_PAGES), "wall", _PAGES)


def _launches(device: torch.device, kind: str) -> Probe:
    operand = torch.ones(1, device=device)
    out = torch.empty(1, device=device)

    def launches() -> None:
        for _ in range(_LAUNCHES):
            torch.add(operand, operand, out=out)

    if kind == "enqueue":
        return Probe(Work(launches), 0, additions(count=_LAUNCHES), "host", _LAUNCHES)
    if kind == "spacing":
        method = additions_on_device_clock(count=_LAUNCHES)
        return Probe(Work(launches), 0, method, parts=_LAUNCHES)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launches()
    method = graph_of_additions(count=_LAUNCHES)
    return Probe(Work(graph.replay), 0, method, parts=_LAUNCHES)


def _transfers(device: torch.device, roof: str, kind: str, size: int) -> Probe:
    host = torch.ones(size, dtype=torch.uint8)
    copy = _transfer(device, roof, host.pin_memory() if kind == "pinned" else host)
    return Probe(Work(copy), size, host_clock(), "wall")


def _pinned_on_the_spot(device: torch.device, roof: str, size: int) -> Probe:
    """A copy with the page-locking inside, as a single one pays it."""
    host = torch.ones(size, dtype=torch.uint8)
    copy = _transfer(device, roof, host)
    library = torch.cuda.cudart()  # type: ignore[no-untyped-call]

    def step() -> None:
        # Not by pin_memory: torch keeps what was pinned, and the second time would be free.
        if code := int(library.cudaHostRegister(host.data_ptr(), host.nbytes, 0)):
            raise RuntimeError(f"cudaHostRegister failed with code {code}")
        copy()
        torch.cuda.synchronize(device)
        library.cudaHostUnregister(host.data_ptr())

    return Probe(Work(step), size, pinned_for_one_copy(), "wall")


def _transfer(device: torch.device, roof: str, host: torch.Tensor) -> Callable[[], Any]:
    remote = torch.empty(host.numel(), dtype=host.dtype, device=device)
    target, source = (remote, host) if roof == HOST_TO_DEVICE else (host, remote)
    return partial(target.copy_, source, non_blocking=True)


def size_name(size: int) -> str:
    """A size as part of the name of a ceiling."""
    for scale, unit in ((GiB, "GiB"), (MiB, "MiB")):
        if size >= scale:
            return f"{size // scale} {unit}"
    return f"{size // KiB} KiB"


@contextmanager
def _tf32() -> Iterator[None]:
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
