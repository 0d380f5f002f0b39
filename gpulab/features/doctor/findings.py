"""Findings of `--doctor`: what this machine has, what it lacks, and what fixes it."""

from __future__ import annotations

from gpulab.core.findings import finding
from gpulab.core.units import byte_count, plural

_MANY_COLOURS = 1 << 24


@finding("not installed")
def not_there() -> None: ...
@finding("no C++ compiler")
def no_compiler() -> None: ...
@finding("an NVIDIA device without its driver")
def gpu_without_driver() -> None: ...
@finding("none, and no NVIDIA device")
def no_gpu_and_no_driver() -> None: ...
@finding("it comes with a torch built for CUDA")
def comes_with_cuda_torch() -> None: ...
@finding("reboot")
def reboot() -> None: ...
@finding(
    "reboot, or reload its module: rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia; nvidia-smi"
)
def reboot_or_reload() -> None: ...
@finding("modprobe nvidia; where that fails, dmesg | grep -i nvrm says why")
def load_driver() -> None: ...
@finding("nvidia-smi shows details; after an update of the driver, reboot")
def ask_nvidia_smi_or_reboot() -> None: ...
@finding("nvidia-smi; then read the kernel log (dmesg | grep -i nvrm)")
def ask_nvidia_smi_and_kernel_log() -> None: ...
@finding("install the NVIDIA driver that your distribution packages")
def install_driver() -> None: ...
@finding("a machine with an NVIDIA GPU")
def use_gpu_machine() -> None: ...
@finding("install g++")
def install_compiler() -> None: ...
@finding("export XDG_STATE_HOME=FOLDER, with a writable folder")
def set_state_home() -> None: ...
@finding("{command}")
def run_command(*, command: str) -> None: ...
@finding("{package}")
def package(*, package: str) -> None: ...
@finding("{path}")
def file(*, path: str) -> None: ...
@finding("{gpulab}, Python {python}")
def versions(*, gpulab: str, python: str) -> None: ...


@finding()
def torch_build(*, torch: str | None, cuda: str | None, gpu_unused: bool) -> str:
    build = f"built for CUDA {cuda}" if cuda else "a build without CUDA"
    unused = ", in a machine with an NVIDIA device" if gpu_unused else ""
    return f"{torch or 'unknown'}, {build}{unused}"


@finding("{message}")
def probe_failed(*, message: str) -> None: ...
@finding("the answer of the probe cannot be read: {message}")
def probe_unreadable(*, message: str) -> None: ...
@finding("the probe exited with {code}: {message}")
def probe_ended(*, code: int, message: str) -> None: ...
@finding("no answer within {timeout_s:.0f} s: the driver hangs")
def probe_hangs(*, timeout_s: float) -> None: ...


@finding()
def devices_hidden_by(*, version: str | None, value: str) -> str:
    return f"{version or 'unknown'}; CUDA_VISIBLE_DEVICES={value!r} hides every device"


@finding()
def torch_without_driver(*, version: str | None, message: str) -> str:
    return f"{version or 'unknown'}; torch: {message}"


@finding()
def driver_answers(*, version: str | None, devices: list[str]) -> str:
    return ", ".join([version or "working, version not shown here", *devices])


@finding()
def needs_cuda_torch(*, package: str | None) -> str:
    return f"{package or 'not installed'}; it requires a torch built for CUDA"


@finding("{package} conflicts with torch built for CUDA {cuda}")
def package_of_other_cuda(*, package: str, cuda: str) -> None: ...


@finding()
def cpu_device(*, device: str, cores: int, capability: str, memory_bytes: int) -> str:
    cpu = f"{device}, {plural(cores, 'usable core')}"
    return f"{cpu}, {capability}, {byte_count(memory_bytes)}"


@finding()
def gpu_device(*, device: str, capability: str, memory_bytes: int, uuid: str | None) -> str:
    gpu = f"{device}, compute capability {capability}, {byte_count(memory_bytes)}"
    return f"{gpu}, {uuid}" if uuid else gpu


@finding("{path} is not writable")
def folder_not_writable(*, path: str) -> None: ...


@finding()
def terminal(
    *,
    columns: int | None,
    lines: int | None,
    unicode: bool,
    locale: str,
    colours: int,
    tmux: bool,
    ssh: bool,
) -> str:
    facts = [
        f"{columns}x{lines}" if columns else "stdout is not a terminal",
        "UTF-8" if unicode else f"ASCII (locale {locale})",
        _colours(colours),
    ]
    if tmux:
        facts.append("in tmux")
    if ssh:
        facts.append("over SSH: the screen is drawn twice a second")
    return ", ".join(facts)


def _colours(count: int) -> str:
    if count == _MANY_COLOURS:
        return "16 million colours"
    return f"{count} colours" if count else "no colours"
