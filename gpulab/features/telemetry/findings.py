"""Findings of telemetry: why there is none, why a field has no value, what the device went
through.
"""

from __future__ import annotations

from gpulab.core.findings import Rank, finding
from gpulab.core.statuses import CheckKind


@finding("not supported by this device")
def not_supported() -> None: ...
@finding("not in this driver")
def not_in_driver() -> None: ...
@finding("not permitted")
def not_permitted() -> None: ...
@finding("the driver fails to read it")
def keeps_failing() -> None: ...
@finding("no NVIDIA driver found: telemetry shows the host only")
def no_driver() -> None: ...
@finding("the NVIDIA driver is not loaded: telemetry shows the host only")
def driver_not_loaded() -> None: ...
@finding("the driver was updated: reboot, or reload its module")
def driver_was_updated() -> None: ...
@finding("GPU lost: see its Xid line in the kernel log (dmesg)")
def gpu_lost() -> None: ...
@finding("the GPU needs a reset: see its Xid line in the kernel log (dmesg)")
def gpu_needs_reset() -> None: ...
@finding("no permission to use the NVIDIA driver")
def no_driver_permission() -> None: ...
@finding("the driver lists no such GPU")
def no_such_gpu() -> None: ...
@finding("the driver did not answer before the run ended")
def driver_did_not_answer() -> None: ...
@finding("the telemetry process exited")
def telemetry_process_ended() -> None: ...
@finding("telemetry is off", short="clocks not watched")
def telemetry_off() -> None: ...
@finding("nvidia-ml-py cannot be used: {message}")
def nvml_client_broken(*, message: str) -> None: ...
@finding("the NVIDIA driver reports: {message}")
def driver_error(*, message: str) -> None: ...
@finding("telemetry failed: {message}")
def telemetry_failed(*, message: str) -> None: ...
@finding("the telemetry process could not be started: {message}")
def telemetry_not_started(*, message: str) -> None: ...
@finding(
    "GPU telemetry ended early, GPU not monitored afterwards: {cause}",
    check=CheckKind.CLOCKS,
    short="telemetry ended early",
)
def telemetry_ended_early(*, cause: str) -> None: ...
@finding(
    "could not check whether clocks were throttled: {cause}",
    check=CheckKind.CLOCKS,
    short="clocks not readable",
)
def clocks_not_checked(*, cause: str) -> None: ...
@finding(
    "could not check whether other processes used the GPU: {cause}",
    check=CheckKind.CONTENTION,
    short="processes not readable",
)
def processes_not_checked(*, cause: str) -> None: ...
@finding(
    "{reasons:list}: {dropped} of {blocks} blocks dropped",
    check=CheckKind.CLOCKS,
    short="clocks throttled",
)
def clocks_slowed(*, reasons: list[str], dropped: int, blocks: int) -> None: ...
@finding(
    "another process on the GPU ({processes:list}): {dropped} of {blocks} blocks dropped",
    check=CheckKind.CONTENTION,
    short="another process on the GPU",
)
def gpu_shared(*, processes: list[str], dropped: int, blocks: int) -> None: ...
@finding(
    "power cap in {capped} of {readings} readings while measuring: times are valid for this power "
    "limit",
    rank=Rank.EXPLAINING,
)
def power_capped(*, capped: int, readings: int) -> None: ...
@finding(
    "the driver reported Xid {xid}: details in the kernel log (dmesg)",
    rank=Rank.INVALIDATING,
    check=CheckKind.CLOCKS,
)
def xid(*, xid: int) -> None: ...
@finding(
    "{count} uncorrected memory errors (ECC) since the driver was loaded",
    rank=Rank.INVALIDATING,
    check=CheckKind.CLOCKS,
)
def ecc_errors(*, count: int) -> None: ...
@finding(
    "a remapping of memory rows failed: the device needs replacement",
    rank=Rank.INVALIDATING,
    check=CheckKind.CLOCKS,
)
def row_remapping_failed() -> None: ...
@finding("memory rows are remapped at the next reset of the GPU", rank=Rank.EXPLAINING)
def row_remapping_pending() -> None: ...
@finding(
    "PCIe width {width} of {full}: copies between host and device are slower than they could be",
    rank=Rank.EXPLAINING,
)
def pcie_narrow(*, width: int, full: int) -> None: ...
