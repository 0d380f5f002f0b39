"""The device a run measures on: named, sized, waited for, seeded."""

from __future__ import annotations

import gc
import os
import platform
import random
import re
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import torch

import gpulab
from gpulab.model.request import Device
from gpulab.model.scenario import KiB, MiB

_FLUSH_BYTES = 256 * MiB
_KHZ_IN_MHZ = 1000
_MOST_CACHE_OF_A_CORE = 16 * MiB


class DeviceError(RuntimeError):
    """The device that was asked for is not there; the message says which are."""


def find(name: str, threads: int) -> tuple[torch.device, Device]:
    """The device by its torch name, `cpu` or `cuda:N`. DeviceError where torch has no such device."""
    torch.set_num_threads(threads)
    device = torch.device(name)
    if device.type == "cpu":
        return device, Device(
            kind="cpu", name=_cpu_name(), threads=threads, memory_bytes=_memory_bytes(), l2_bytes=_last_level_cache()
        )
    if not torch.cuda.is_available():
        built = torch.version.cuda
        why = (
            "torch is a build without CUDA"
            if built is None
            else f"torch {torch.__version__} finds no usable CUDA device"
        )
        raise DeviceError(f"{name}: {why}; run with --device cpu")
    if (device.index or 0) >= torch.cuda.device_count():
        raise DeviceError(f"{name}: there are {torch.cuda.device_count()} CUDA devices, numbered from 0")
    torch.cuda.set_device(device)
    found = torch.cuda.get_device_properties(device)
    uuid = str(found.uuid)
    return device, Device(
        kind="cuda",
        name=found.name,
        uuid=uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}",
        threads=threads,
        memory_bytes=found.total_memory,
        l2_bytes=found.L2_cache_size,
        capability=f"{found.major}.{found.minor}",
        sms=found.multi_processor_count,
        # Not in every torch: 0 where it does not say.
        sm_mhz=getattr(found, "clock_rate", 0) / _KHZ_IN_MHZ,
        memory_mhz=getattr(found, "memory_clock_rate", 0) / _KHZ_IN_MHZ,
        bus_bits=getattr(found, "memory_bus_width", 0),
    )


def environment() -> dict[str, str | None]:
    """Versions that a result depends on; None where something is not installed."""
    versions: dict[str, str | None] = {
        "gpulab": gpulab.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "driver": _driver(),
        "platform": platform.platform(),
    }
    for package in ("numpy", "triton", "cupy-cuda12x", "cupy-cuda13x"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    return versions


def waiter(device: torch.device) -> Callable[[], None] | None:
    """What waits until the device is idle; None on a CPU, where a step is done when it returns."""
    if device.type != "cuda":
        return None
    return lambda: torch.cuda.synchronize(device)


def flusher(device: torch.device, l2_bytes: int) -> Callable[[], None]:
    """What empties the caches, by writing more than they hold."""
    data = torch.empty(max(_FLUSH_BYTES, 2 * l2_bytes), dtype=torch.uint8, device=device)

    def flush() -> None:
        data.zero_()

    return flush


def release(device: torch.device) -> None:
    """Give cached device memory back, so that the next build gets fresh addresses and all of the memory."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        if cupy := sys.modules.get("cupy"):
            cupy.get_default_memory_pool().free_all_blocks()


def refuse_what_does_not_fit() -> None:
    """Let an allocation that is larger than the free memory raise, instead of the system killing the process later.

    Linux grants any allocation and ends the process that touches too much of it, with all it measured.
    """
    used, free = _status("/proc/self/status", "VmData"), free_memory()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [one for one in (soft, hard, used + free) if one != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))


def free_memory() -> int:
    """Bytes that this process can still have."""
    return min([_status("/proc/meminfo", "MemAvailable"), *_free_in_groups()])


def _free_in_groups() -> list[int]:
    """Bytes that each control group around this process still grants; page cache is given back when needed."""
    root, found = Path("/sys/fs/cgroup"), []
    with suppress(OSError, ValueError):
        mine = root / Path("/proc/self/cgroup").read_text().strip().rpartition("::/")[2]
        for group in (mine, *mine.parents):
            with suppress(OSError, ValueError):
                limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
                cache = re.search(r"^inactive_file (\d+)$", (group / "memory.stat").read_text(), re.MULTILINE)
                found.append(limit - used + (int(cache.group(1)) if cache else 0))
    return found


def _status(path: str, field: str) -> int:
    """A field of a /proc file in bytes; they are in KiB there."""
    found = re.search(rf"^{field}:\s*(\d+) kB", Path(path).read_text(), re.MULTILINE)
    return int(found.group(1)) * KiB if found else 0


def seed_everything(seed: int) -> None:
    """Seed every generator a build may draw from, so that all variants see the same data."""
    random.seed(seed)
    torch.manual_seed(seed)
    for module, path in (("numpy", "random"), ("cupy", "random")):
        if loaded := sys.modules.get(module):
            getattr(loaded, path).seed(seed % 2**32)


def _driver() -> str | None:
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return None
    found = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", text)
    return found.group(1) if found else None


def _cpu_name() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found.group(1).strip() if found else platform.machine()


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _last_level_cache() -> int:
    """As the system says, and no more than any CPU has for so many cores: a virtual machine names its socket's."""
    units = {"K": KiB, "M": MiB, "": 1}
    sizes = [path.read_text().strip() for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    said = max((int(size.rstrip("KM")) * units[size.lstrip("0123456789")] for size in sizes), default=0)
    return min(said, _MOST_CACHE_OF_A_CORE * (os.cpu_count() or 1))
