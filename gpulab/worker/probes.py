"""The work that ceilings are measured by: copies, products, chains of arithmetic, empty launches, transfers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import torch

from gpulab.model.ceilings import CACHE, LAUNCH, LINKS, MATRIX, MEMORY, VECTOR
from gpulab.model.request import Device
from gpulab.model.scenario import GiB, KiB, MiB, Work
from gpulab.worker import kernels

_BEYOND_CACHE = 4
_MOST_OF_MEMORY = 16
_FEWEST_BYTES = 64 * MiB  # of one array: what is smaller is cached somewhere, whatever the system says
_LARGEST_PRODUCT, _PRODUCT_S = 8192, 0.06
_LAUNCHES = 200
_PATTERN = 4096  # drawing a gigabyte of numbers would take longer than moving it
_TRANSFERS = (4 * KiB, 1 * MiB, 16 * MiB, 256 * MiB)
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
    """One way to a ceiling: `amount` bytes or FLOPs a step of `work`; 0 where the time of one of `parts` counts.

    `clock`: device, wall, or host for what queueing alone costs.
    """

    roof: str
    kind: str
    amount: int
    work: Work
    how: str
    clock: str = "device"
    parts: int = 1
    rests: bool = False
    """Whether the device slows down under it, and so is given pauses at first: its best is before that."""


def probes(
    device: torch.device, found: Device, wanted: Callable[[str, str], bool], *, brief: bool = False
) -> Iterator[Probe]:
    """One after the other, each with its data, which goes when the next one is asked for.

    `brief`: of memory only the fastest and the slowest way, of the cache one footprint.
    """
    yield from _of_memory(device, found, wanted, ("copy", "update") if brief else ("copy", "triad", "update", "read"))
    yield from _of_cache(device, found, wanted, (4,) if brief else (8, 4, 2))
    for kind in _kinds(device):
        if wanted(MATRIX, kind):
            yield _product(device, kind)
    if device.type == "cuda" and kernels.available():
        for kind in ("fp32", "fp64"):
            if wanted(VECTOR, kind):
                made = kernels.fma_chain(device, found, kind)
                yield Probe(VECTOR, kind, made.amount, Work(made.step), made.how)
    if wanted(LAUNCH, "enqueue"):
        yield from _of_launches(device)
    if device.type == "cuda":
        for roof in LINKS:
            if wanted(roof, ""):
                yield from _of_link(device, roof)


def _of_memory(
    device: torch.device, found: Device, wanted: Callable[[str, str], bool], kinds: Collection[str]
) -> Iterator[Probe]:
    array = max(_BEYOND_CACHE * found.l2_bytes, _FEWEST_BYTES)
    array = min(GiB if device.type == "cuda" else array, max(_FEWEST_BYTES, found.memory_bytes // _MOST_OF_MEMORY))
    yield from _streams(device, MEMORY, array, kinds, wanted)


def _of_cache(
    device: torch.device, found: Device, wanted: Callable[[str, str], bool], parts: Collection[int]
) -> Iterator[Probe]:
    if not found.l2_bytes or not wanted(CACHE, ""):
        return
    for part in parts:
        footprint = found.l2_bytes // part
        if device.type == "cpu":
            yield from _streams(device, CACHE, footprint // 2, ("copy",), wanted)
            yield from _streams(device, CACHE, footprint // 3, ("triad",), wanted)
            yield from _streams(device, CACHE, footprint, ("read",), wanted)
        elif kernels.available():
            made = kernels.l2_reads(device, found, footprint)
            yield Probe(CACHE, "read", made.amount, Work(made.step), made.how)


def _streams(
    device: torch.device, roof: str, array: int, kinds: Collection[str], wanted: Callable[[str, str], bool]
) -> Iterator[Probe]:
    """STREAM's copy and triad (J. D. McCalpin), an update in place, and a read, on arrays of so many bytes.

    A CPU loads the lines that it is going to store to: only the update moves no more than is counted.
    """
    kinds = [kind for kind in kinds if wanted(roof, kind)]
    if not kinds:
        return
    count, how = array // 4, f"arrays of {_size(array)}"
    a, b, out = (torch.rand(_PATTERN, device=device).repeat(1 + count // _PATTERN)[:count] for _ in range(3))
    if "copy" in kinds:
        yield Probe(roof, "copy", 2 * a.nbytes, Work(lambda: out.copy_(a)), how)
    if "triad" in kinds:
        yield Probe(roof, "triad", 3 * a.nbytes, Work(lambda: torch.add(a, b, alpha=3.0, out=out)), how)
    if "update" in kinds:
        yield Probe(roof, "update", 3 * a.nbytes, Work(lambda: out.add_(a, alpha=1e-6)), how)
    if "read" in kinds:
        yield Probe(roof, "read", a.nbytes, Work(lambda: torch.sum(a)), how)


def _kinds(device: torch.device) -> list[str]:
    """The types that the device has matrix units or instructions for. Never fp16 on a CPU: it is emulated there."""
    if device.type == "cpu":
        return ["fp64", "fp32", "bf16", "int8"]
    capability = torch.cuda.get_device_capability(device)
    found = ["fp64", "fp32"]
    found += ["tf32"] if capability >= (8, 0) else []
    found += ["fp16"] if capability >= (7, 0) else []
    found += ["bf16"] if capability >= (8, 0) else []
    found += ["fp8"] if capability >= (8, 9) else []
    found += ["int8"] if capability >= (7, 5) else []
    return found


def _product(device: torch.device, kind: str) -> Probe:
    """A product of two random matrices, as large as takes some milliseconds: on zeros it would run faster."""
    size = 256 if device.type == "cpu" else 2048
    while True:
        step = _multiply(device, kind, size)
        context = _tf32 if kind == "tf32" else None
        with context() if context else nullcontext():
            step()
            _wait(device)
            started = perf_counter()
            step()
            _wait(device)
        if size >= _LARGEST_PRODUCT or 8 * (perf_counter() - started) > _PRODUCT_S:
            how, rests = f"product of {size}^3, random data", device.type == "cuda"
            return Probe(MATRIX, kind, 2 * size**3, Work(step, context=context), how, rests=rests)
        size *= 2


def _multiply(device: torch.device, kind: str, size: int) -> Callable[[], torch.Tensor]:
    dtype = _DTYPES[kind]
    if kind == "int8":
        a, b = (torch.randint(-127, 128, (size, size), dtype=dtype, device=device) for _ in range(2))
        b = b if device.type == "cpu" else b.t().contiguous().t()
        return lambda: torch._int_mm(a, b)
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    if kind == "fp8":
        b, one = b.t().contiguous().t(), torch.ones((), device=device)  # the layout that the hardware wants
        return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    out = torch.empty(size, size, dtype=dtype, device=device)
    return partial(torch.mm, a, b, out=out)


def _of_launches(device: torch.device) -> Iterator[Probe]:
    one, out = torch.ones(1, device=device), torch.empty(1, device=device)

    def launches() -> None:
        for _ in range(_LAUNCHES):
            torch.add(one, one, out=out)

    how = f"additions of one element, {_LAUNCHES} in a row"
    yield Probe(LAUNCH, "enqueue", 0, Work(launches), how, "host", _LAUNCHES)
    if device.type == "cuda":
        yield Probe(LAUNCH, "spacing", 0, Work(launches), f"{how}, on the device's clock", "device", _LAUNCHES)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            launches()
        yield Probe(
            LAUNCH, "graph node", 0, Work(graph.replay), f"a graph of {_LAUNCHES} additions", "device", _LAUNCHES
        )


def _of_link(device: torch.device, roof: str) -> Iterator[Probe]:
    """Page-locked and pageable copies; the largest also with the page-locking itself, as a single copy would pay it."""
    for size in _TRANSFERS:
        there, plain = torch.empty(size, dtype=torch.uint8, device=device), torch.ones(size, dtype=torch.uint8)
        copies = {"pinned": _transfer(roof, there, plain.pin_memory()), "pageable": _transfer(roof, there, plain)}
        for kind, copy in copies.items():
            yield Probe(roof, f"{kind} {_size(size)}", size, Work(copy), "host's clock", "wall")
    pin = partial(_pinned_on_the_spot, _transfer(roof, there, plain), plain)
    yield Probe(roof, f"pinned on the spot {_size(size)}", size, Work(pin), "page-locked for this one copy", "wall")


def _pinned_on_the_spot(copy: Callable[[], Any], host: torch.Tensor) -> None:
    # Not by pin_memory: torch keeps what was pinned, and the second time would be free.
    library = torch.cuda.cudart()  # type: ignore[no-untyped-call]
    library.cudaHostRegister(host.data_ptr(), host.nbytes, 0)
    copy()
    torch.cuda.synchronize()
    library.cudaHostUnregister(host.data_ptr())


def _transfer(roof: str, there: torch.Tensor, here: torch.Tensor) -> Callable[[], Any]:
    to, of = (there, here) if roof == LINKS[0] else (here, there)
    return partial(to.copy_, of, non_blocking=True)


def _size(size: int) -> str:
    scale, unit = next((scale, unit) for scale, unit in ((GiB, "GiB"), (MiB, "MiB"), (KiB, "KiB")) if size >= scale)
    return f"{size / scale:.3g} {unit}"


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@contextmanager
def _tf32() -> Iterator[None]:
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
