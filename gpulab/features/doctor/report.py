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
from gpulab.commit import version
from gpulab.core import terminal
from gpulab.core.findings import Finding
from gpulab.core.machine import CheckStatus, DriverProbe, MachineCheck, TorchProbe
from gpulab.core.text import plain
from gpulab.features.doctor import findings
from gpulab.features.telemetry.findings import (
    driver_not_loaded,
    driver_was_updated,
    gpu_lost,
    gpu_needs_reset,
)
from gpulab.proc.spawn import HangsError, capture
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


def examine() -> list[MachineCheck]:
    """Look at everything; takes as long as importing torch, and starting CUDA, does."""
    torch = probe_torch()
    driver = probe_driver()
    return [
        _ok("gpulab", findings.versions(gpulab=version(), python=platform.python_version())),
        check_torch(torch, driver),
        check_driver(torch, driver),
        *_devices(torch),
        check_cupy(driver),
        check_nvrtc(),
        _triton(driver),
        _jax(),
        _compiler(),
        _terminal(),
        _run_files(),
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
        return _missing(_TORCH, findings.not_there(), "everything", _command("pip install torch"))
    if problem:
        fix = _command(_REINSTALL_TORCH)
        if problem.code == findings.probe_hangs.code:
            fix = findings.reboot()
        if problem.code == findings.probe_ended.code:
            problem = failed_import_of_torch(**problem.values)  # type: ignore[arg-type]
        return _broken(_TORCH, problem, "everything", fix)
    gpu_unused = torch.cuda is None and _is_gpu_there(driver)
    result = findings.torch_build(torch=torch.torch, cuda=torch.cuda, gpu_unused=gpu_unused)
    if gpu_unused:
        return _missing(_TORCH, result, "gpu_scenarios", _command(_REINSTALL_TORCH))
    return _ok(_TORCH, result)


def check_driver(torch: TorchProbe, driver: DriverProbe) -> MachineCheck:
    """Return whether the driver answers, by its own library and by torch."""
    version = driver.version
    if devices_are_hidden():
        value = os.environ["CUDA_VISIBLE_DEVICES"]
        result = findings.devices_hidden_by(version=version, value=value)
        return _missing("driver", result, "gpu_scenarios", _command("unset CUDA_VISIBLE_DEVICES"))
    if driver.problem and driver.present:
        return _broken(
            "driver", driver.problem, "telemetry_and_gpu_scenarios", _driver_fix(driver.problem)
        )
    if torch.cuda_error and (version or has_gpu()):
        result = findings.torch_without_driver(version=version, message=torch.cuda_error)
        return _broken("driver", result, "gpu_scenarios", findings.ask_nvidia_smi_or_reboot())
    if version or any(device.on_gpu for device in torch.devices):
        return _ok("driver", findings.driver_answers(version=version, devices=list(driver.devices)))
    if has_gpu():
        return _missing(
            "driver", findings.gpu_without_driver(), "gpu_scenarios", findings.install_driver()
        )
    return _missing(
        "driver", findings.no_gpu_and_no_driver(), "gpu_scenarios", findings.use_gpu_machine()
    )


def check_cupy(driver: DriverProbe) -> MachineCheck:
    """Return whether CuPy is there, and is the one for torch's CUDA."""
    package = installed(*CUPY)
    cuda = torch_cuda()
    extra = fitting_cupy()
    if cuda in (None, NO_TORCH):
        result = findings.needs_cuda_torch(package=package)
        return _missing("CuPy", result, "cuda_lessons", _torch_for_cuda(driver))
    install = f"pip install 'gpulab[{extra}]'"
    if package is None:
        return _missing("CuPy", findings.not_there(), "cuda_lessons", _command(install))
    name = package.split()[0]
    if name.startswith("cupy-cuda") and name != f"cupy-{extra}x":
        fix = _command(f"pip uninstall -y {name} && {install}")
        return _broken(
            "CuPy",
            findings.package_of_other_cuda(package=package, cuda=cuda),
            "cuda_lessons",
            fix,
        )
    return _ok("CuPy", findings.package(package=package))


def check_nvrtc() -> MachineCheck:
    """Return whether CUDA C++ can be compiled here: with a GPU or without one."""
    bindings = installed(NVRTC)
    library = installed(*_NVRTC_LIBRARIES)
    if bindings and (library or torch_cuda() not in (None, NO_TORCH)):
        return _ok("NVRTC", findings.package(package=", ".join(filter(None, (bindings, library)))))
    return _missing(
        "NVRTC", findings.not_there(), "kernel_code", _command("pip install 'gpulab[nvrtc]'")
    )


def _devices(torch: TorchProbe) -> list[MachineCheck]:
    checks = []
    for number, (device, capability) in enumerate(
        zip(torch.devices, torch.capabilities, strict=True), start=-1
    ):
        if device.on_gpu:
            result = findings.gpu_device(
                device=device.name,
                capability=capability,
                memory_bytes=device.memory_bytes,
                uuid=device.uuid,
            )
            checks.append(_ok(f"cuda:{number}", result))
        else:
            result = findings.cpu_device(
                device=device.name,
                cores=len(os.sched_getaffinity(0)),
                capability=capability,
                memory_bytes=device.memory_bytes,
            )
            checks.append(_ok("cpu", result))
    return checks


def _triton(driver: DriverProbe) -> MachineCheck:
    if package := installed("triton"):
        return _ok("Triton", findings.package(package=package))
    if torch_cuda() in (None, NO_TORCH):
        result = findings.comes_with_cuda_torch()
        return _missing("Triton", result, "triton_lessons", _torch_for_cuda(driver))
    return _missing(
        "Triton", findings.not_there(), "triton_lessons", _command("pip install triton")
    )


def _jax() -> MachineCheck:
    if package := installed("jax"):
        return _ok("JAX", findings.package(package=package))
    return _missing("JAX", findings.not_there(), "jax_lesson", _command("pip install jax"))


def _compiler() -> MachineCheck:
    if path := compiler():
        return _ok("compiler", findings.file(path=path))
    install = next((command for tool, command in _INSTALLERS.items() if shutil.which(tool)), None)
    fix = _command(install) if install else findings.install_compiler()
    return _missing("compiler", findings.no_compiler(), "compile_on_cpu", fix)


def _terminal() -> MachineCheck:
    size = shutil.get_terminal_size()
    is_terminal = sys.stdout.isatty()
    unicode = terminal.shows_unicode()
    result = findings.terminal(
        columns=size.columns if is_terminal else None,
        lines=size.lines if is_terminal else None,
        unicode=unicode,
        locale=terminal.locale(),
        colours=terminal.colour_count(),
        tmux=bool(os.environ.get("TMUX")),
        ssh=terminal.over_ssh(),
    )
    if unicode:
        return _ok("terminal", result)
    fix = "tmux -u attach" if terminal.tmux_shows_unicode() is False else "export LC_ALL=C.UTF-8"
    return _missing("terminal", result, "finer_drawing", _command(fix))


def _run_files() -> MachineCheck:
    folder = default_path("x").parent
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if existing.is_dir() and os.access(existing, os.W_OK):
        return _ok("run files", findings.file(path=str(folder)))
    result = findings.folder_not_writable(path=str(existing))
    return _broken("run files", result, "runs_without_output", findings.set_state_home())


def _ok(name: str, result: Finding) -> MachineCheck:
    return MachineCheck(name=name, status=CheckStatus.OK, result=result)


def _missing(name: str, result: Finding, enables: str, fix: Finding) -> MachineCheck:
    return MachineCheck(
        name=name, status=CheckStatus.MISSING, result=result, enables=enables, fix=fix
    )


def _broken(name: str, result: Finding, enables: str, fix: Finding) -> MachineCheck:
    return MachineCheck(
        name=name, status=CheckStatus.BROKEN, result=result, enables=enables, fix=fix
    )


def _command(command: str) -> Finding:
    return findings.run_command(command=command)


def _driver_fix(problem: Finding) -> Finding:
    match problem.code:
        case driver_was_updated.code:
            return findings.reboot_or_reload()
        case driver_not_loaded.code:
            return findings.load_driver()
        case gpu_lost.code | gpu_needs_reset.code | findings.probe_hangs.code:
            return findings.reboot()
    return findings.ask_nvidia_smi_and_kernel_log()


_GPU_PROBLEMS = {
    known.code for known in (driver_was_updated, driver_not_loaded, gpu_lost, gpu_needs_reset)
}


def _is_gpu_there(driver: DriverProbe) -> bool:
    """A driver that is out of order lists no device, and a container may lack its files."""
    problem = driver.problem.code if driver.problem else ""
    return has_gpu() or driver.version is not None or problem in _GPU_PROBLEMS


def _torch_for_cuda(driver: DriverProbe) -> Finding:
    there = _is_gpu_there(driver)
    return _command(_REINSTALL_TORCH) if there else findings.use_gpu_machine()
