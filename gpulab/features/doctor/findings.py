"""Findings of `--doctor`: what this machine has, what it lacks, and what fixes it."""

from __future__ import annotations

from gpulab.core.findings import finding, plain
from gpulab.core.units import byte_count, plural

_MANY_COLOURS = 1 << 24

not_there = plain("not_there", "not installed")
no_compiler = plain("no_compiler", "no C++ compiler")
gpu_without_driver = plain("gpu_without_driver", "an NVIDIA device without its driver")
no_gpu_and_no_driver = plain("no_gpu_and_no_driver", "none, and no NVIDIA device")
comes_with_cuda_torch = plain("comes_with_cuda_torch", "it comes with a torch built for CUDA")
reboot = plain("reboot", "reboot")
ask_nvidia_smi_or_reboot = plain(
    "ask_nvidia_smi_or_reboot", "nvidia-smi shows details; after an update of the driver, reboot"
)
ask_nvidia_smi_and_kernel_log = plain(
    "ask_nvidia_smi_and_kernel_log",
    "nvidia-smi; then read the kernel log (dmesg | grep -i nvrm)",
)
install_driver = plain(
    "install_driver", "install the NVIDIA driver that your distribution packages"
)
use_gpu_machine = plain("use_gpu_machine", "a machine with an NVIDIA GPU")
install_compiler = plain("install_compiler", "install g++")
set_state_home = plain("set_state_home", "export XDG_STATE_HOME=FOLDER, with a writable folder")


@finding()
def run_command(*, command: str) -> str:
    return command


@finding()
def package(*, package: str) -> str:
    return package


@finding()
def file(*, path: str) -> str:
    return path


@finding()
def versions(*, gpulab: str, python: str) -> str:
    return f"{gpulab}, Python {python}"


@finding()
def torch_build(*, torch: str | None, cuda: str | None, gpu_unused: bool) -> str:
    build = f"built for CUDA {cuda}" if cuda else "a build without CUDA"
    unused = ", in a machine with an NVIDIA device" if gpu_unused else ""
    return f"{torch or 'unknown'}, {build}{unused}"


@finding()
def torch_broken(*, message: str) -> str:
    return message


@finding()
def probe_failed(*, message: str) -> str:
    return message


@finding()
def probe_unreadable(*, message: str) -> str:
    return f"the answer of the probe cannot be read: {message}"


@finding()
def probe_ended(*, code: int, message: str) -> str:
    return f"the probe exited with {code}: {message}"


@finding()
def probe_hangs(*, timeout_s: float) -> str:
    return f"no answer within {timeout_s:.0f} s: the driver hangs"


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


@finding()
def package_of_other_cuda(*, package: str, cuda: str) -> str:
    return f"{package} conflicts with torch built for CUDA {cuda}"


@finding()
def cpu_device(*, device: str, cores: int, capability: str, memory_bytes: int) -> str:
    cpu = f"{device}, {plural(cores, 'usable core')}"
    return f"{cpu}, {capability}, {byte_count(memory_bytes)}"


@finding()
def gpu_device(*, device: str, capability: str, memory_bytes: int, uuid: str | None) -> str:
    gpu = f"{device}, compute capability {capability}, {byte_count(memory_bytes)}"
    return f"{gpu}, {uuid}" if uuid else gpu


@finding()
def folder_not_writable(*, path: str) -> str:
    return f"{path} is not writable"


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
