"""What this machine has for the lab, what is missing, what that would enable, and what fixes it.

Nothing here imports torch: devices are looked at by a worker, which may hang or die of what it
meets.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from gpulab.catalog.needs import (
    CUPY,
    NO_TORCH,
    NVRTC,
    broken_torch,
    compiler,
    devices_are_hidden,
    failed_import_of_torch,
    fitting_cupy,
    has_gpu,
    installed,
    torch_cuda,
)
from gpulab.catalog.source import shown_path
from gpulab.commit import version
from gpulab.core import terminal
from gpulab.core.findings import Finding
from gpulab.core.machine import CheckStatus, DriverProbe, MachineCheck, TorchProbe
from gpulab.core.text import plain
from gpulab.core.units import byte_count, plural
from gpulab.features.doctor import findings
from gpulab.features.doctor.ladder import ladder
from gpulab.proc.spawn import HangsError, capture
from gpulab.report.sentences import sentence
from gpulab.session.drive import Interrupts
from gpulab.session.run_files import default_path

TORCH_PROBE = (sys.executable, "-P", "-m", "gpulab.engine.probe")
DRIVER_PROBE = (sys.executable, "-P", "-m", "gpulab.features.telemetry", "probe")
TIMEOUT_S = 120.0
Answer = TypeVar("Answer", TorchProbe, DriverProbe)


class ProbeError(Exception):
    """No answer came."""

    def __init__(self, reason: Finding) -> None:
        super().__init__(reason.code)
        self.reason = reason


def probe_torch(command: Sequence[str] = TORCH_PROBE, timeout_s: float = TIMEOUT_S) -> TorchProbe:
    """Return what torch makes of the machine; the lack of an answer is one too."""
    return _answer(command, timeout_s, TorchProbe)


def probe_driver(
    command: Sequence[str] = DRIVER_PROBE, timeout_s: float = TIMEOUT_S
) -> DriverProbe:
    """Return what the driver's own library reports; the lack of an answer is one too."""
    return _answer(command, timeout_s, DriverProbe)


def _answer(command: Sequence[str], timeout_s: float, answer_type: type[Answer]) -> Answer:
    try:
        return msgspec.json.decode(_output_of(command, timeout_s), type=answer_type)
    except ProbeError as error:
        problem = error.reason
    except OSError as error:
        problem = findings.probe_failed(message=str(error))
    except msgspec.DecodeError as error:
        problem = findings.probe_unreadable(message=str(error))
    return answer_type(problem=problem)


def _output_of(command: Sequence[str], timeout_s: float) -> bytes:
    with Interrupts() as interrupts:
        try:
            done = capture(command, timeout_s, started=interrupts.stop_with)
        except HangsError:
            raise ProbeError(findings.probe_hangs(timeout_s=timeout_s)) from None
    if done.code or not done.output:
        last_line = plain(done.errors.decode(errors="replace").strip().rpartition("\n")[2])
        raise ProbeError(findings.probe_ended(code=done.code, message=last_line))
    return done.output


_INSTALLERS = {
    "apt-get": "apt-get install -y g++",
    "dnf": "dnf install -y gcc-c++",
    "pacman": "pacman -S gcc",
}
_NVRTC_LIBRARIES = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
_TORCH = "torch"
"""The name of its check."""
_REINSTALL_TORCH = "pip install --force-reinstall torch"
_GPU_MACHINE = "a machine with an NVIDIA GPU"
_MANY_COLOURS = 1 << 24

_EVERYTHING = "everything"
_ON_GPU = "every scenario on a GPU"
_CUDA_LESSONS = "the CUDA C++ lessons"
_TRITON_LESSONS = "the Triton lessons, torch.compile on a GPU"


def examine() -> list[MachineCheck]:
    """Look at everything; takes as long as importing torch, and starting CUDA, does."""
    torch = probe_torch()
    driver = probe_driver()
    return [
        _ok("gpulab", f"{version()}, Python {platform.python_version()}"),
        check_torch(torch, driver),
        check_driver(torch, driver),
        *_devices(torch),
        check_cupy(driver),
        check_nvrtc(),
        _triton(driver),
        _package("JAX", installed("jax"), "the JAX lesson", "pip install jax"),
        _compiler(),
        _terminal(),
        _run_files(),
        *ladder(driver),
    ]


def can_measure(checks: Iterable[MachineCheck]) -> bool:
    """Return whether nothing is broken and torch is as it should be: without it nothing can be
    measured.
    """
    return not any(
        check.status == CheckStatus.BROKEN
        or (check.name == _TORCH and check.status != CheckStatus.OK)
        for check in checks
    )


def check_torch(torch: TorchProbe, driver: DriverProbe) -> MachineCheck:
    """Return whether torch is there, works, and was built for the machine's GPU."""
    problem = broken_torch() or torch.problem
    if torch_cuda() == NO_TORCH and broken_torch() is None:
        return _missing(_TORCH, "not installed", _EVERYTHING, "pip install torch")
    if problem:
        fix = _REINSTALL_TORCH
        if problem.code == findings.probe_hangs.code:
            fix = "reboot"
        if problem.code == findings.probe_ended.code:
            problem = failed_import_of_torch(**problem.values)  # type: ignore[arg-type]
        return _broken(_TORCH, sentence(problem), _EVERYTHING, fix)
    if torch.cuda:
        return _ok(_TORCH, f"{torch.torch or 'unknown'}, built for CUDA {torch.cuda}")
    result = f"{torch.torch or 'unknown'}, a build without CUDA"
    if not _is_gpu_there(driver):
        return _ok(_TORCH, result)
    unused = f"{result}, in a machine with an NVIDIA device"
    return _missing(_TORCH, unused, _ON_GPU, _REINSTALL_TORCH)


def check_driver(torch: TorchProbe, driver: DriverProbe) -> MachineCheck:
    """Return whether the driver answers, by its own library and by torch."""
    version = driver.version
    if devices_are_hidden():
        value = os.environ["CUDA_VISIBLE_DEVICES"]
        result = f"{version or 'unknown'}; CUDA_VISIBLE_DEVICES={value!r} hides every device"
        return _missing("driver", result, _ON_GPU, "unset CUDA_VISIBLE_DEVICES")
    if driver.problem and driver.present:
        fix = driver.fix or "nvidia-smi; then read the kernel log (dmesg | grep -i nvrm)"
        if driver.problem.code == findings.probe_hangs.code:
            fix = "reboot"
        return _broken("driver", sentence(driver.problem), f"telemetry, and {_ON_GPU}", fix)
    if torch.cuda_error and (version or has_gpu()):
        result = f"{version or 'unknown'}; torch: {torch.cuda_error}"
        fix = "nvidia-smi shows details; after an update of the driver, reboot"
        return _broken("driver", result, _ON_GPU, fix)
    if version or any(device.on_gpu for device in torch.devices):
        version = version or "working, version not shown here"
        return _ok("driver", ", ".join([version, *driver.devices]))
    if has_gpu():
        fix = "install the NVIDIA driver that your distribution packages"
        return _missing("driver", "an NVIDIA device without its driver", _ON_GPU, fix)
    return _missing("driver", "none, and no NVIDIA device", _ON_GPU, _GPU_MACHINE)


def check_cupy(driver: DriverProbe) -> MachineCheck:
    """Return whether CuPy is there, and is the one for torch's CUDA."""
    package = installed(*CUPY)
    cuda = torch_cuda()
    extra = fitting_cupy()
    if cuda in (None, NO_TORCH):
        result = f"{package or 'not installed'}; it requires a torch built for CUDA"
        return _missing("CuPy", result, _CUDA_LESSONS, _torch_for_cuda(driver))
    install = f"pip install 'gpulab[{extra}]'"
    if package is None:
        return _missing("CuPy", "not installed", _CUDA_LESSONS, install)
    name = package.split()[0]
    if name.startswith("cupy-cuda") and name != f"cupy-{extra}x":
        result = f"{package} conflicts with torch built for CUDA {cuda}"
        return _broken("CuPy", result, _CUDA_LESSONS, f"pip uninstall -y {name} && {install}")
    return _ok("CuPy", package)


def check_nvrtc() -> MachineCheck:
    """Return whether CUDA C++ can be compiled here: with a GPU or without one."""
    packages = ""
    bindings = installed(NVRTC)
    library = installed(*_NVRTC_LIBRARIES)
    if bindings and (library or torch_cuda() not in (None, NO_TORCH)):
        packages = ", ".join(filter(None, (bindings, library)))
    enables = "registers and machine code of CUDA C++ kernels"
    return _package("NVRTC", packages, enables, "pip install 'gpulab[nvrtc]'")


def _devices(torch: TorchProbe) -> list[MachineCheck]:
    checks = []
    for number, (device, capability) in enumerate(
        zip(torch.devices, torch.capabilities, strict=True), start=-1
    ):
        memory = byte_count(device.memory_bytes)
        if device.on_gpu:
            result = f"{device.name}, compute capability {capability}, {memory}"
            identified = f"{result}, {device.uuid}" if device.uuid else result
            checks.append(_ok(f"cuda:{number}", identified))
        else:
            cores = plural(len(os.sched_getaffinity(0)), "usable core")
            checks.append(_ok("cpu", f"{device.name}, {cores}, {capability}, {memory}"))
    return checks


def _triton(driver: DriverProbe) -> MachineCheck:
    package = installed("triton")
    if package is None and torch_cuda() in (None, NO_TORCH):
        result = "it comes with a torch built for CUDA"
        return _missing("Triton", result, _TRITON_LESSONS, _torch_for_cuda(driver))
    return _package("Triton", package, _TRITON_LESSONS, "pip install triton")


def _package(name: str, package: str | None, enables: str, install: str) -> MachineCheck:
    if package:
        return _ok(name, package)
    return _missing(name, "not installed", enables, install)


def _compiler() -> MachineCheck:
    if path := compiler():
        return _ok("compiler", path)
    installs = [command for tool, command in _INSTALLERS.items() if shutil.which(tool)]
    fix = next(iter(installs), "install g++")
    return _missing("compiler", "no C++ compiler", "torch.compile on a CPU", fix)


def _terminal() -> MachineCheck:
    size = shutil.get_terminal_size()
    unicode = terminal.shows_unicode()
    is_terminal = sys.stdout.isatty()
    facts = [
        f"{size.columns}x{size.lines}" if is_terminal else "stdout is not a terminal",
        "UTF-8" if unicode else f"ASCII (locale {terminal.locale()})",
        _colours(terminal.colour_count()),
    ]
    if os.environ.get("TMUX"):
        facts.append("in tmux")
    if terminal.over_ssh():
        facts.append("over SSH: the screen is drawn twice a second")
    result = ", ".join(facts)
    if unicode:
        return _ok("terminal", result)
    fix = "tmux -u attach" if terminal.tmux_shows_unicode() is False else "export LC_ALL=C.UTF-8"
    return _missing("terminal", result, "finer drawing; everything has an ASCII form", fix)


def _colours(count: int) -> str:
    if count == _MANY_COLOURS:
        return "16 million colours"
    return f"{count} colours" if count else "no colours"


def _run_files() -> MachineCheck:
    folder = default_path("x").parent
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if existing.is_dir() and os.access(existing, os.W_OK):
        return _ok("run files", shown_path(folder))
    result = f"{shown_path(existing)} is not writable"
    fix = "export XDG_STATE_HOME=FOLDER, with a writable folder"
    return _broken("run files", result, "a history of runs", fix)


def _ok(name: str, result: str) -> MachineCheck:
    return MachineCheck(name=name, status=CheckStatus.OK, result=result)


def _missing(name: str, result: str, enables: str, fix: str) -> MachineCheck:
    return MachineCheck(
        name=name, status=CheckStatus.MISSING, result=result, enables=enables, fix=fix
    )


def _broken(name: str, result: str, enables: str, fix: str) -> MachineCheck:
    return MachineCheck(
        name=name, status=CheckStatus.BROKEN, result=result, enables=enables, fix=fix
    )


def _is_gpu_there(driver: DriverProbe) -> bool:
    """A driver that is out of order lists no device, and a container may lack its files."""
    return has_gpu() or driver.version is not None or bool(driver.fix)


def _torch_for_cuda(driver: DriverProbe) -> str:
    return _REINSTALL_TORCH if _is_gpu_there(driver) else _GPU_MACHINE
