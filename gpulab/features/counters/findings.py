"""Findings of counting with ncu: where its report is, and why something was not counted."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding


@finding("its counters, for ncu-ui: {file}")
def counters_kept(*, file: str) -> None: ...
@finding("nothing was counted: there is no ncu on PATH (Nsight Compute, a part of CUDA's toolkit)")
def ncu_missing() -> None: ...
@finding("nothing was counted: ncu counts kernels of a CUDA device, and this run is on the CPU")
def counters_need_cuda() -> None: ...
@finding("nothing was counted: ncu runs each kernel alone, and those of ranks wait for each other")
def counters_of_ranks() -> None: ...


@finding(
    "nothing was counted: the driver allows counters to root alone (ERR_NVGPUCTRPERM); for all: "
    "echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 | sudo tee "
    "/etc/modprobe.d/counters.conf, and restart; a container needs --cap-add=SYS_ADMIN"
)
def counters_not_allowed() -> None: ...
@finding("nothing was counted: ncu could not load its library, or that of the driver")
def ncu_not_loaded() -> None: ...
@finding(
    "nothing was counted: another tool has the counters, such as DCGM (dcgmi profile --pause), or "
    "this lab's telemetry (--telemetry off)"
)
def counters_in_use() -> None: ...
@finding("not counted: ncu failed: {message}", rank=Rank.EXPLAINING)
def counting_failed(*, message: str) -> None: ...
@finding("not counted: ncu took longer than {limit_s:seconds}", rank=Rank.EXPLAINING)
def counting_too_long(*, limit_s: float) -> None: ...
@finding("not counted: its step failed: {message}", rank=Rank.EXPLAINING)
def counted_step_failed(*, message: str) -> None: ...


@finding(
    "not counted: its step has no kernel; copies, memsets and what the CPU computes are none",
    rank=Rank.EXPLAINING,
)
def no_kernels_counted() -> None: ...
