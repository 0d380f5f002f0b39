"""What is said of telemetry: why there is none, why a field has no value, and what the device went
through.
"""

from __future__ import annotations

from gpulab.draw.templates import Words

UNSUPPORTED = {
    "not_supported": Words("not supported by this device"),
    "not_in_driver": Words("not in this driver"),
    "not_permitted": Words("not permitted"),
    "not_in_client": Words("not in this version of nvidia-ml-py"),
    "keeps_failing": Words("the driver fails to read it"),
}
"""Why a field of telemetry has no value."""
WORDS = {
    **UNSUPPORTED,
    "run_on_cpu": Words("this run is on the CPU"),
    "nvml_client_broken": Words("nvidia-ml-py cannot be used: {message}"),
    "no_driver": Words("no NVIDIA driver found: telemetry shows the host only"),
    "driver_not_loaded": Words("the NVIDIA driver is not loaded: telemetry shows the host only"),
    "driver_was_updated": Words("the driver was updated: reboot, or reload its module"),
    "gpu_lost": Words("GPU lost: the kernel's log (dmesg) has its Xid line"),
    "gpu_needs_reset": Words("the GPU needs a reset: the kernel's log (dmesg) has its Xid line"),
    "no_driver_permission": Words("no permission to use the NVIDIA driver"),
    "no_such_gpu": Words("the driver lists no such GPU"),
    "driver_error": Words("the NVIDIA driver reports: {message}"),
    "driver_did_not_answer": Words("the driver did not answer before the run ended"),
    "telemetry_failed": Words("telemetry failed: {message}"),
    "telemetry_not_started": Words("the telemetry process could not be started: {message}"),
    "telemetry_process_ended": Words("the telemetry process ended"),
    "telemetry_ended_early": Words(
        "GPU telemetry ended early, GPU not monitored afterwards: {cause}"
    ),
    "clocks_not_checked": Words("could not check whether the clocks were held back: {cause}"),
    "processes_not_checked": Words("could not check whether other processes used the GPU: {cause}"),
    "clocks_slowed": Words("{reasons}: {dropped} of {blocks} blocks dropped"),
    "gpu_shared": Words(
        "another process on the GPU ({processes}): {dropped} of {blocks} blocks dropped"
    ),
    "power_capped": Words(
        "power cap in {capped} of {readings} readings of the rounds: times hold for this limit"
    ),
    "xid": Words("the driver reported Xid {xid}: the kernel's log (dmesg) has more"),
    "ecc_errors": Words("{count} uncorrected memory errors (ECC) since the driver was loaded"),
    "row_remapping_failed": Words(
        "a remapping of memory rows failed: the device needs replacement"
    ),
    "row_remapping_pending": Words("memory rows wait for a reset to be remapped"),
    "pcie_narrow": Words(
        "PCIe width {width} of {full}: copies from and to the host are slower than they could be"
    ),
}
