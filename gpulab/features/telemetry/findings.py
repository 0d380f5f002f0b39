"""Findings of telemetry: why there is none, why a field has no value, what the device went
through.
"""

from __future__ import annotations

from gpulab.core.findings import Rank, finding, plain
from gpulab.core.statuses import CheckKind

not_supported = plain("not_supported", "not supported by this device")
not_in_driver = plain("not_in_driver", "not in this driver")
not_permitted = plain("not_permitted", "not permitted")
not_in_client = plain("not_in_client", "not in this version of nvidia-ml-py")
keeps_failing = plain("keeps_failing", "the driver fails to read it")
no_driver = plain("no_driver", "no NVIDIA driver found: telemetry shows the host only")
driver_not_loaded = plain(
    "driver_not_loaded", "the NVIDIA driver is not loaded: telemetry shows the host only"
)
driver_was_updated = plain(
    "driver_was_updated", "the driver was updated: reboot, or reload its module"
)
gpu_lost = plain("gpu_lost", "GPU lost: see its Xid line in the kernel log (dmesg)")
gpu_needs_reset = plain(
    "gpu_needs_reset", "the GPU needs a reset: see its Xid line in the kernel log (dmesg)"
)
no_driver_permission = plain("no_driver_permission", "no permission to use the NVIDIA driver")
no_such_gpu = plain("no_such_gpu", "the driver lists no such GPU")
driver_did_not_answer = plain(
    "driver_did_not_answer", "the driver did not answer before the run ended"
)
telemetry_process_ended = plain("telemetry_process_ended", "the telemetry process exited")
telemetry_off = plain("telemetry_off", "telemetry is off", short="clocks not watched")


@finding()
def nvml_client_broken(*, message: str) -> str:
    return f"nvidia-ml-py cannot be used: {message}"


@finding()
def driver_error(*, message: str) -> str:
    return f"the NVIDIA driver reports: {message}"


@finding()
def telemetry_failed(*, message: str) -> str:
    return f"telemetry failed: {message}"


@finding()
def telemetry_not_started(*, message: str) -> str:
    return f"the telemetry process could not be started: {message}"


@finding(check=CheckKind.CLOCKS, short="telemetry ended early")
def telemetry_ended_early(*, cause: str) -> str:
    return f"GPU telemetry ended early, GPU not monitored afterwards: {cause}"


@finding(check=CheckKind.CLOCKS, short="clocks not readable")
def clocks_not_checked(*, cause: str) -> str:
    return f"could not check whether clocks were throttled: {cause}"


@finding(check=CheckKind.CONTENTION, short="processes not readable")
def processes_not_checked(*, cause: str) -> str:
    return f"could not check whether other processes used the GPU: {cause}"


@finding(check=CheckKind.CLOCKS, short="clocks throttled")
def clocks_slowed(*, reasons: list[str], dropped: int, blocks: int) -> str:
    return f"{', '.join(reasons)}: {dropped} of {blocks} blocks dropped"


@finding(check=CheckKind.CONTENTION, short="another process on the GPU")
def gpu_shared(*, processes: list[str], dropped: int, blocks: int) -> str:
    return (
        f"another process on the GPU ({', '.join(processes)}): {dropped} of {blocks} blocks dropped"
    )


@finding(rank=Rank.EXPLAINING)
def power_capped(*, capped: int, readings: int) -> str:
    return (
        f"power cap in {capped} of {readings} readings while measuring: times are valid for this "
        "power limit"
    )


@finding(rank=Rank.INVALIDATING, check=CheckKind.CLOCKS)
def xid(*, xid: int) -> str:
    return f"the driver reported Xid {xid}: details in the kernel log (dmesg)"


@finding(rank=Rank.INVALIDATING, check=CheckKind.CLOCKS)
def ecc_errors(*, count: int) -> str:
    return f"{count} uncorrected memory errors (ECC) since the driver was loaded"


row_remapping_failed = plain(
    "row_remapping_failed",
    "a remapping of memory rows failed: the device needs replacement",
    rank=Rank.INVALIDATING,
    check=CheckKind.CLOCKS,
)
row_remapping_pending = plain(
    "row_remapping_pending",
    "memory rows are remapped at the next reset of the GPU",
    rank=Rank.EXPLAINING,
)


@finding(rank=Rank.EXPLAINING)
def pcie_narrow(*, width: int, full: int) -> str:
    return (
        f"PCIe width {width} of {full}: copies between host and device are slower than they "
        "could be"
    )
