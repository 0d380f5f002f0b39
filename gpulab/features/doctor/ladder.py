"""Ways to know what a step does to a device, from what its author declares to counters of each
kernel: which work on this machine, and what would allow those that do not.
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path

from gpulab.catalog.needs import has_gpu, torch_hip, torch_version
from gpulab.core.findings import Finding
from gpulab.core.machine import CheckStatus, DriverProbe, MachineCheck
from gpulab.features import part
from gpulab.report.sentences import sentence

_GPU = "a machine with an NVIDIA GPU"
_RIGHTS = (
    "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, or CAP_SYS_ADMIN"
)
_CAP_SYS_ADMIN = 1 << 21


def ladder(driver: DriverProbe) -> list[MachineCheck]:
    """A check for each way."""
    fix = "" if torch_version() else "pip install torch"
    by_torch = "operations, their FLOPs, and bytes of their operands"
    rungs = [
        _rung("declared work", "bytes and FLOPs that a scenario declares"),
        _rung("torch's counts", by_torch, "efficiency of operations", fix),
    ]
    sees = {
        "GPM": "SMs, tensor cores and DRAM in telemetry",
        "PM sampling": "counters within a step (--counters)",
        "ncu": "all counters of a kernel, which runs again for each set of them",
    }
    if has_gpu() or driver.devices:
        dcgm = part("counters_in_time.environment:dcgm_process")
        beside = f"; {dcgm} reads the same counters, either may disturb the other" if dcgm else ""
        for (name, enables), look in zip(sees.items(), (_gpm, _pm_sampling, _ncu), strict=True):
            result, fix = look(driver)
            rungs.append(_rung(name, result + beside, enables, fix))
    else:
        rungs += [_rung(name, "no NVIDIA GPU", enables, _GPU) for name, enables in sees.items()]
    if (hip := torch_hip()) or Path("/dev/kfd").exists():
        result = "scenarios run on the CPU; no telemetry, no counters"
        result = f"torch for ROCm: {hip or 'none'}; {result}"
        rungs.append(_rung("AMD GPU", result, "runs on a GPU", _GPU))
    return rungs


def _rung(name: str, result: str, enables: str | None = None, fix: str = "") -> MachineCheck:
    """One that works, or with what fixes it one that does not."""
    name, status = f"counts: {name}", CheckStatus.MISSING if fix else CheckStatus.OK
    enables = enables if fix else None
    return MachineCheck(name=name, status=status, result=result, enables=enables, fix=fix or None)


def _gpm(driver: DriverProbe) -> tuple[str, str]:
    if any(driver.gpm):
        return f"by NVML, of {sum(driver.gpm)} of {len(driver.gpm)} GPUs", ""
    return "not by this GPU and driver", "a Hopper or newer GPU"


def _pm_sampling(_: DriverProbe) -> tuple[str, str]:
    probed: tuple[str, Finding | None] | None = part("counters_in_time.after:probe")
    if probed is None:
        return "taken out of this gpulab", "pip install gpulab"
    result, reason = probed
    if reason is None:
        return result, ""
    fix = reason.values.get("install") or reason.values.get("fix") or "nvidia-smi"
    return sentence(reason), str(fix)


def _ncu(_: DriverProbe) -> tuple[str, str]:
    path = shutil.which("ncu")
    if path is None:
        return "not on PATH", "install Nsight Compute, and put it on PATH"
    admins_only = _number("/proc/driver/nvidia/params", r"^RmProfilingAdminOnly: (\w+)")
    if admins_only and not _number("/proc/self/status", r"^CapEff:\s*(\w+)") & _CAP_SYS_ADMIN:
        return f"{path}: the driver keeps counters from this user", _RIGHTS
    return path, ""


def _number(path: str, pattern: str) -> int:
    with suppress(OSError):
        found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
        return int(found.group(1), 16) if found else 0
    return 0
