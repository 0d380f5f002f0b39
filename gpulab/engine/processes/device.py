"""The device a worker runs on: named, sized, waited for; its memory; and the versions that a result
depends on.
"""

from __future__ import annotations

import gc
import os
import platform
import re
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import psutil
import torch

from gpulab.commit import version
from gpulab.core.machine import Device, cpu_name, driver_version
from gpulab.engine.processes.startup import DEVICE, timed
from gpulab.scenario import KiB, MiB

_SMALL_PART = 0.125
"""Part of the memory: while less is in use, there is room for kept outputs and a second build."""


def release_memory(device: torch.device) -> None:
    """Give cached device memory back: the next build gets fresh addresses, and all of it."""
    gc.collect()
    if device.type == "cuda":
        _free_cached()


def _free_cached() -> None:
    torch.cuda.empty_cache()
    if cupy := sys.modules.get("cupy"):
        cupy.get_default_memory_pool().free_all_blocks()


def limit_to_free_memory() -> None:
    """Let an allocation that is larger than the free memory raise, instead of the system killing
    the process later.

    Linux grants any allocation and ends the process that touches too much of it, with all it
    measured.
    """
    used = _proc_bytes("/proc/self/status", "VmData")
    free = free_memory()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [limit for limit in (soft, hard, used + free) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))


def is_mostly_free(device: torch.device) -> bool:
    """Return whether less than an eighth of the device's memory is in use, by anybody; on a CPU,
    of what this process may have (`limit_to_free_memory`).
    """
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return free > (1 - _SMALL_PART) * total
    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    return _proc_bytes("/proc/self/status", "VmData") < _SMALL_PART * limit


def free_memory() -> int:
    """Bytes that this process can still have."""
    return min([_proc_bytes("/proc/meminfo", "MemAvailable"), *_free_in_groups()])


def _free_in_groups() -> list[int]:
    """Bytes that each control group still grants; page cache is given back when needed."""
    root = Path("/sys/fs/cgroup")
    free = []
    with suppress(OSError, ValueError):
        own = root / Path("/proc/self/cgroup").read_text().strip().rpartition("::/")[2]
        for group in (own, *own.parents):
            with suppress(OSError, ValueError):
                limit, used = (
                    int((group / name).read_text()) for name in ("memory.max", "memory.current")
                )
                cache = re.search(
                    r"^inactive_file (\d+)$", (group / "memory.stat").read_text(), re.MULTILINE
                )
                free.append(limit - used + (int(cache.group(1)) if cache else 0))
    return free


def _proc_bytes(path: str, field: str) -> int:
    """A field of a /proc file in bytes; they are in KiB there."""
    match = re.search(rf"^{field}:\s*(\d+) kB", Path(path).read_text(), re.MULTILINE)
    return int(match.group(1)) * KiB if match else 0


class DeviceError(RuntimeError):
    """The device that was asked for is not there; the message says which are."""


@timed(DEVICE)
def open_device(name: str, threads: int) -> tuple[torch.device, Device]:
    """The device by its torch name, `cpu` or `cuda:N`. DeviceError where there is none."""
    torch.set_num_threads(threads)
    device = torch.device(name)
    if device.type == "cpu":
        return device, Device(
            kind="cpu",
            name=cpu_name(),
            threads=threads,
            memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            l2_bytes=_last_level_cache(),
        )
    if not torch.cuda.is_available():
        reason = "torch is built without CUDA"
        if torch.version.cuda:
            reason = f"torch {torch.__version__} finds no usable CUDA device"
        raise DeviceError(f"{name}: {reason}; run with --device cpu")
    if (device.index or 0) >= torch.cuda.device_count():
        raise DeviceError(
            f"{name}: there are {torch.cuda.device_count()} CUDA devices, numbered from 0"
        )
    torch.cuda.set_device(device)
    properties = torch.cuda.get_device_properties(device)
    uuid = str(properties.uuid)
    return device, Device(
        kind="cuda",
        name=properties.name,
        uuid=uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}",
        threads=threads,
        memory_bytes=properties.total_memory,
        l2_bytes=properties.L2_cache_size,
        capability=f"{properties.major}.{properties.minor}",
        sms=properties.multi_processor_count,
        # in kHz, and not in every torch: 0 where it does not say
        sm_mhz=getattr(properties, "clock_rate", 0) / 1000,
        memory_mhz=getattr(properties, "memory_clock_rate", 0) / 1000,
        bus_bits=getattr(properties, "memory_bus_width", 0),
    )


def environment() -> dict[str, str | None]:
    """Versions that a result depends on; None where something is not installed."""
    versions: dict[str, str | None] = {
        "gpulab": version(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "driver": driver_version(),
        "platform": platform.platform(),
    }
    for package in ("numpy", "triton", "cupy-cuda12x", "cupy-cuda13x"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    return versions


def waiter(device: torch.device) -> Callable[[], None] | None:
    """Return a function that waits for an idle device; None on a CPU, where none is needed."""
    if device.type != "cuda":
        return None
    return lambda: torch.cuda.synchronize(device)


def warm_context(device: torch.device) -> None:
    """Create this process's context on the device, and load cuBLAS, before they are needed."""
    data = torch.ones(64, 64, device=device)
    torch.mm(data, data)
    torch.cuda.synchronize(device)


def may_stay() -> bool:
    """Return whether this process has freed nearly all of its GPU memory, and may keep its context
    for a while.
    """
    if psutil.Process().children() or "jax" in sys.modules:
        return False
    _free_cached()
    free, total = torch.cuda.mem_get_info()
    return free > total // 2


def flusher(device: torch.device, l2_bytes: int) -> Callable[[], None]:
    """Return a function that empties the caches, by writing more than they hold."""
    data = torch.empty(max(256 * MiB, 2 * l2_bytes), dtype=torch.uint8, device=device)

    def flush() -> None:
        data.zero_()

    return flush


def _last_level_cache() -> int:
    """In bytes, as the system reports it, and at most 16 MiB per core: a virtual machine reports
    that of the whole socket.
    """
    units = {"K": KiB, "M": MiB, "": 1}
    sizes = [
        path.read_text().strip()
        for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    ]
    reported = max(
        (int(size.rstrip("KM")) * units[size.lstrip("0123456789")] for size in sizes), default=0
    )
    return min(reported, 16 * MiB * (os.cpu_count() or 1))
