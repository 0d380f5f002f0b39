"""Findings of counting with ncu: where its report is, and why something was not counted."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding

_REASONS = {
    "ncu_missing": "there is no ncu on PATH; install Nsight Compute, a part of CUDA's toolkit, or "
    "https://developer.nvidia.com/nsight-compute",
    "on_cpu": "it needs a CUDA device, and this run is on the CPU",
    "ranks": "it runs each kernel alone, and those of ranks wait for each other",
    "not_allowed": "the driver allows counters to root alone (ERR_NVGPUCTRPERM); its module needs "
    "NVreg_RestrictProfilingToAdminUsers=0, a container --cap-add=SYS_ADMIN: --guide counters",
    "not_loaded": "it could not load its library, or that of the driver",
    "in_use": "another tool has the counters, such as DCGM (dcgmi profile --pause), or "
    "telemetry of this lab (--telemetry off)",
}


@finding("counters, for ncu-ui: {file}")
def counters_kept(*, file: str) -> None: ...
@finding()
def nothing_counted(*, reason: str) -> str:
    return f"ncu counts nothing: {_REASONS.get(reason, reason)}"


@finding("not counted: {message}", rank=Rank.EXPLAINING)
def not_counted(*, message: str) -> None: ...
