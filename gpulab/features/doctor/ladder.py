"""Ways to know what a step does to a device, from what its author declares to counters of each
kernel: which work on this machine, and what would allow those that do not.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gpulab.catalog.needs import has_gpu, torch_hip
from gpulab.core.findings import Finding
from gpulab.core.machine import CheckStatus, DriverProbe, MachineCheck, TorchProbe
from gpulab.features import part
from gpulab.report.sentences import sentence

_GPU = "a machine with an NVIDIA GPU"
_RIGHTS = (
    "NVreg_RestrictProfilingToAdminUsers=0 as an option of the nvidia module, or CAP_SYS_ADMIN"
)
_CAP_SYS_ADMIN = 21


def ladder(torch: TorchProbe, driver: DriverProbe) -> list[MachineCheck]:
    """A check for each way; the lower ones are of any device."""
    gpu = has_gpu() or bool(driver.devices)
    dcgm = part("counters_in_time.environment:dcgm_process") if gpu else ""
    beside = f"; {dcgm} reads the same counters, either may disturb the other" if dcgm else ""
    fix = "" if torch.torch else "pip install torch"
    return [
        _rung("declared work", "bytes and FLOPs that a scenario declares", "", ""),
        _rung("torch's counts", "operations, their FLOPs and operands", "efficiency", fix),
        _gpm(driver, beside),
        _pm_sampling(beside, gpu=gpu),
        _ncu(gpu=gpu),
        *_rocm(),
    ]


def _rung(name: str, result: str, enables: str, fix: str) -> MachineCheck:
    """One that works, or with what fixes it one that does not."""
    name = f"counts: {name}"
    if not fix:
        return MachineCheck(name=name, status=CheckStatus.OK, result=result)
    status = CheckStatus.MISSING
    return MachineCheck(name=name, status=status, result=result, enables=enables, fix=fix)


def _gpm(driver: DriverProbe, beside: str) -> MachineCheck:
    enables = "SMs, tensor cores and DRAM in telemetry, five times a second"
    if any(driver.gpm):
        words = f"by NVML, of {sum(driver.gpm)} of {len(driver.gpm)} GPUs"
        return _rung("GPM", f"{words}{beside}", "", "")
    if driver.devices:
        return _rung("GPM", "not of this GPU and driver", enables, "an H100 or newer GPU")
    return _rung("GPM", "no NVIDIA GPU", enables, _GPU)


def _pm_sampling(beside: str, *, gpu: bool) -> MachineCheck:
    name, enables = "PM sampling", "counters within a step (--counters)"
    if not gpu:
        return _rung(name, "no NVIDIA GPU", enables, _GPU)
    probed: tuple[str, Finding | None] | None = part("counters_in_time.sampling:probe")
    if probed is None:
        return _rung(name, "taken out of this gpulab", enables, "pip install gpulab")
    words, reason = probed
    if reason is None:
        return _rung(name, f"{words}{beside}", "", "")
    fix = str(reason.values.get("install", "nvidia-smi shows whether the driver works"))
    if reason.code == "counters_not_permitted":
        fix = _RIGHTS
    return _rung(name, sentence(reason), enables, fix)


def _ncu(*, gpu: bool) -> MachineCheck:
    enables = "every counter of a kernel, which runs again for each set of them"
    path = shutil.which("ncu")
    if not gpu:
        return _rung("ncu", path or "no NVIDIA GPU", enables, _GPU)
    if path is None:
        return _rung("ncu", "not on PATH", enables, "install Nsight Compute, and put it on PATH")
    if not _may_profile():
        return _rung("ncu", f"{path}: the driver keeps counters from this user", enables, _RIGHTS)
    return _rung("ncu", path, "", "")


def _may_profile() -> bool:
    """Whether the driver lets this process read counters."""
    if _number("/proc/driver/nvidia/params", r"^RmProfilingAdminOnly: (\d+)", 10) == 0:
        return True
    capabilities = _number("/proc/self/status", r"^CapEff:\s*(\w+)", 16) or 0
    return bool(capabilities >> _CAP_SYS_ADMIN & 1)


def _number(path: str, pattern: str, base: int) -> int | None:
    with suppress(OSError):
        found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
        return int(found.group(1), base) if found else None
    return None


def _rocm() -> Sequence[MachineCheck]:
    hip = torch_hip()
    if hip is None and not Path("/dev/kfd").exists():
        return []
    built = f"torch built for ROCm {hip}" if hip else "an AMD GPU"
    result = (
        f"{built}: scenarios run on the CPU, without telemetry or counters of the GPU; recordings "
        "of its profiler are not tested"
    )
    return [_rung("ROCm", result, "runs on a GPU", _GPU)]
