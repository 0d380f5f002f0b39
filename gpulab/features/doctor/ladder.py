"""Ways to know what a step does to a device, from what its author declares to counters of each
kernel: which work on this machine, and what would allow those that do not.
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from gpulab.catalog.needs import has_gpu, torch_hip, torch_version
from gpulab.core.machine import COUNTERS_FIX, CheckStatus, DriverProbe, MachineCheck
from gpulab.features import part

_GPU = "a machine with an NVIDIA GPU"
_CAP_SYS_ADMIN = 1 << 21
_ON_NVIDIA = {
    "GPM": "SMs, tensor cores and DRAM in telemetry",
    "PM sampling": "counters within a step (--counters)",
    "ncu": "all counters of a kernel, which runs again for each set of them",
}
"""What each way to read counters enables."""


def ladder(driver: DriverProbe) -> list[MachineCheck]:
    """A check for each way."""
    torch_fix = "" if torch_version() else "pip install torch"
    by_torch = "operations, their FLOPs, and bytes of their operands"
    rungs = [
        _rung("declared work", "bytes and FLOPs that a scenario declares"),
        _rung("torch's counts", by_torch, torch_fix, "efficiency of operations"),
    ]
    looks, dcgm = [("no NVIDIA GPU", _GPU)] * len(_ON_NVIDIA), ""
    if has_gpu() or driver.devices:
        looks = [_gpm(driver), _pm_sampling(), _ncu()]
        dcgm = part("counters_in_time.environment:dcgm_process")
    beside = f"; {dcgm} reads the same counters, either may disturb the other" if dcgm else ""
    for (name, enables), (result, fix) in zip(_ON_NVIDIA.items(), looks, strict=True):
        rungs.append(_rung(name, result + beside, fix, enables))
    if (hip := torch_hip()) or Path("/dev/kfd").exists():
        result = "scenarios run on the CPU; no telemetry, no counters"
        result = f"torch for ROCm: {hip or 'none'}; {result}"
        rungs.append(_rung("AMD GPU", result, _GPU, "runs on a GPU"))
    return rungs


def _rung(name: str, result: str, fix: str = "", enables: str = "") -> MachineCheck:
    """One that works, or with what fixes it one that does not."""
    check = MachineCheck(name=f"counts: {name}", status=CheckStatus.OK, result=result)
    return replace(check, status=CheckStatus.MISSING, enables=enables, fix=fix) if fix else check


def _gpm(driver: DriverProbe) -> tuple[str, str]:
    if any(driver.gpm):
        return f"by NVML, of {sum(driver.gpm)} of {len(driver.gpm)} GPUs", ""
    return "not by this GPU and driver", "a Hopper or newer GPU"


def _pm_sampling() -> tuple[str, str]:
    probed = part("counters_in_time.after:probe")
    result, reason = probed or ("taken out of this gpulab", None)
    if probed and reason is None:
        return result, ""
    values = reason.values if reason else {"fix": "pip install gpulab"}
    return result, str(values.get("install") or values.get("fix") or "nvidia-smi")


def _ncu() -> tuple[str, str]:
    path = shutil.which("ncu")
    if path is None:
        return "not on PATH", "install Nsight Compute, and put it on PATH"
    admins_only = _number("/proc/driver/nvidia/params", r"^RmProfilingAdminOnly: (\w+)")
    if admins_only and not _number("/proc/self/status", r"^CapEff:\s*(\w+)") & _CAP_SYS_ADMIN:
        return f"{path}: the driver keeps counters from this user", COUNTERS_FIX
    return path, ""


def _number(path: str, pattern: str) -> int:
    with suppress(OSError):
        found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
        return int(found.group(1), 16) if found else 0
    return 0
