"""Memory: how much a process can still have, given back, and refused in time where it is not there."""

from __future__ import annotations

import gc
import re
import resource
import sys
from contextlib import suppress
from pathlib import Path

import torch

from gpulab.scenario import KiB


def release(device: torch.device) -> None:
    """Give cached device memory back, so that the next build gets fresh addresses and all of the memory."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        if cupy := sys.modules.get("cupy"):
            cupy.get_default_memory_pool().free_all_blocks()


def limit_to_free_memory() -> None:
    """Let an allocation that is larger than the free memory raise, instead of the system killing the process later.

    Linux grants any allocation and ends the process that touches too much of it, with all it measured.
    """
    used, free = _proc_bytes("/proc/self/status", "VmData"), free_memory()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [limit for limit in (soft, hard, used + free) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))


def free_memory() -> int:
    """Bytes that this process can still have."""
    return min([_proc_bytes("/proc/meminfo", "MemAvailable"), *_free_in_groups()])


def _free_in_groups() -> list[int]:
    """Bytes that each control group around this process still grants; page cache is given back when needed."""
    root, free = Path("/sys/fs/cgroup"), []
    with suppress(OSError, ValueError):
        own = root / Path("/proc/self/cgroup").read_text().strip().rpartition("::/")[2]
        for group in (own, *own.parents):
            with suppress(OSError, ValueError):
                limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
                cache = re.search(r"^inactive_file (\d+)$", (group / "memory.stat").read_text(), re.MULTILINE)
                free.append(limit - used + (int(cache.group(1)) if cache else 0))
    return free


def _proc_bytes(path: str, field: str) -> int:
    """A field of a /proc file in bytes; they are in KiB there."""
    match = re.search(rf"^{field}:\s*(\d+) kB", Path(path).read_text(), re.MULTILINE)
    return int(match.group(1)) * KiB if match else 0
