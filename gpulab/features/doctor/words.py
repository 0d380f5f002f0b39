"""What is said of a machine: what a scenario needs and it lacks, and what `--doctor` checks."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.units import byte_count, plural
from gpulab.draw.templates import Values, Words

_MANY_COLOURS = 1 << 24


def _torch(values: Values) -> str:
    build = f"built for CUDA {values['cuda']}" if values["cuda"] else "a build without CUDA"
    unused = ", in a machine with an NVIDIA device" if values["gpu_unused"] else ""
    return f"{values['torch']}, {build}{unused}"


def _driver(values: Values) -> str:
    devices = values["devices"]
    version = values["version"] or "it answers; its version is not shown here"
    return (
        f"{version}, {', '.join(devices)}"
        if isinstance(devices, list) and devices
        else f"{version}"
    )


def _needs_cuda_torch(values: Values) -> str:
    return f"{values['package'] or 'not installed'}; it requires a torch built for CUDA"


def _cpu(values: Values) -> str:
    usable, memory = plural(values["cores"], "usable core"), byte_count(values["memory_bytes"])
    return f"{values['device']}, {usable}, {values['capability']}, {memory}"


def _terminal(values: Values) -> str:
    colours = values["colours"]
    facts: Sequence[str] = (
        f"{values['columns']}x{values['lines']}" if values["columns"] else "stdout is no terminal",
        "UTF-8" if values["unicode"] else f"ASCII (locale {values['locale']})",
        "16 million colours"
        if colours == _MANY_COLOURS
        else f"{colours} colours"
        if colours
        else "no colours",
        "in tmux" if values["tmux"] else "",
        "over SSH: the screen is drawn twice a second" if values["ssh"] else "",
    )
    return ", ".join(filter(None, facts))


WORDS = {
    "torch_not_installed": Words("torch is not installed"),
    "torch_without_cuda": Words("this torch is a build without CUDA"),
    "devices_hidden": Words("CUDA_VISIBLE_DEVICES hides every device"),
    "no_gpu": Words("no NVIDIA device in this machine"),
    "not_installed": Words("{package} is not installed: pip install '{install}'"),
    "compiler_not_installed": Words("no C++ compiler: install g++"),
    "no_compiler": Words("no C++ compiler"),
    "versions": Words("{gpulab}, Python {python}"),
    "not_there": Words("not installed"),
    "torch_build": Words(_torch),
    "torch_broken": Words("{message}"),
    "probe_failed": Words("{message}"),
    "probe_unreadable": Words("the answer of the probe cannot be read: {message}"),
    "probe_ended": Words("the probe ended with {code}: {message}"),
    "probe_hangs": Words("no answer within {timeout_s:.0f} s: the driver hangs"),
    "devices_hidden_by": Words("{version}; CUDA_VISIBLE_DEVICES={value!r} hides every device"),
    "torch_without_driver": Words("{version}; torch: {message}"),
    "driver_answers": Words(_driver),
    "gpu_without_driver": Words("an NVIDIA device without its driver"),
    "no_gpu_and_no_driver": Words("none, and no NVIDIA device"),
    "needs_cuda_torch": Words(_needs_cuda_torch),
    "comes_with_cuda_torch": Words("it comes with a torch built for CUDA"),
    "package_of_other_cuda": Words("{package}, beside a torch for CUDA {cuda}"),
    "package": Words("{package}"),
    "cpu_device": Words(_cpu),
    "gpu_device": Words("{device}, compute capability {capability}, {memory_bytes:bytes}, {uuid}"),
    "file": Words("{path}"),
    "folder_not_writable": Words("{path} cannot be written"),
    "terminal": Words(_terminal),
    "run_command": Words("{command}"),
    "reboot": Words("reboot"),
    "ask_nvidia_smi_or_reboot": Words(
        "nvidia-smi shows more; after an update of the driver, reboot"
    ),
    "ask_nvidia_smi_and_kernel_log": Words(
        "nvidia-smi; then read the kernel's log (dmesg | grep -i nvrm)"
    ),
    "install_driver": Words("install the NVIDIA driver that your distribution packages"),
    "use_gpu_machine": Words("a machine with an NVIDIA GPU"),
    "install_compiler": Words("install g++"),
    "set_state_home": Words("export XDG_STATE_HOME=FOLDER, one that can be written"),
}
ENABLES = {
    "everything": "everything",
    "gpu_scenarios": "every scenario on a GPU",
    "telemetry_and_gpu_scenarios": "telemetry, and every scenario on a GPU",
    "cuda_lessons": "the CUDA C++ lessons",
    "kernel_code": "registers and machine code of CUDA C++ kernels",
    "triton_lessons": "the Triton lessons, torch.compile on a GPU",
    "jax_lesson": "the JAX lesson",
    "compile_on_cpu": "torch.compile on a CPU",
    "finer_drawing": "finer drawing; everything has an ASCII form",
    "runs_without_output": "runs without --output",
}
"""What a fix makes possible, by its code."""
