"""What this machine has for the lab, what is missing, what that would enable, and what mends it.

Nothing here imports torch: devices are looked at by a worker, which may hang or die of what it meets.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import msgspec

import gpulab
from gpulab.model.machine import DriverCheck, Finding, Probe
from gpulab.model.plain import plain
from gpulab.model.scenario import GiB
from gpulab.run import terminal
from gpulab.run.needs import CUPY, compiler, fitting_cupy, has_gpu, installed, torch_cuda
from gpulab.run.record import default_path

_PROBE = (sys.executable, "-P", "-m", "gpulab.worker.probe")
_CHECK = (sys.executable, "-P", "-m", "gpulab.telemetry.check")
_PROBE_S = 120.0
_INSTALLERS = {"apt-get": "apt-get install -y g++", "dnf": "dnf install -y gcc-c++", "pacman": "pacman -S gcc"}
_ON_A_GPU = "every scenario on a GPU"


def examine() -> list[Finding]:
    """Look at everything; takes as long as importing torch, and starting CUDA, does."""
    probed, checked = probe(), check_driver()
    return [
        Finding("gpulab", "ok", f"{gpulab.__version__}, Python {platform.python_version()}"),
        _torch(probed),
        _driver(probed, checked),
        *_devices(probed),
        _cupy(),
        _triton(),
        _jax(),
        _compiler(),
        _terminal(),
        _run_files(),
    ]


def probe() -> Probe:
    """Ask a worker; an answer that does not come is one too."""
    try:
        return msgspec.json.decode(_ask(_PROBE), type=Probe)
    except TimeoutError as error:
        return Probe(hangs=True, error=str(error))
    except OSError as error:
        return Probe(error=str(error))
    except msgspec.DecodeError as error:
        return Probe(error=f"the probe's answer cannot be read: {error}")


def check_driver() -> DriverCheck:
    """Ask the driver's own library, in a process of its own."""
    try:
        return msgspec.json.decode(_ask(_CHECK), type=DriverCheck)
    except TimeoutError as error:
        return DriverCheck(why=f"{error}: the driver hangs")
    except (OSError, msgspec.DecodeError) as error:
        return DriverCheck(why=str(error))


def _ask(command: Sequence[str]) -> bytes:
    """What a command answers. TimeoutError where it does not, OSError where it fails."""
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as errors:
        # Files, not pipes: a process that hangs in a driver survives even KILL, and must not be waited for.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=answer, stderr=errors)
        try:
            code = process.wait(_PROBE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
            raise TimeoutError(f"no answer within {_PROBE_S:.0f} s") from None
        answer.seek(0)
        errors.seek(0)
        if code:
            last = plain(errors.read().decode(errors="replace").strip().rpartition("\n")[2])
            raise OSError(f"the probe ended with {code}: {last}")
        return answer.read()


def _torch(probed: Probe) -> Finding:
    if torch_cuda() == "no torch":
        return Finding("torch", "missing", "not installed", "everything", "pip install torch")
    if probed.hangs:
        return Finding("torch", "broken", f"{probed.error}: the driver hangs", "everything", "reboot")
    if probed.error:
        return Finding("torch", "broken", probed.error, "everything", "pip install --force-reinstall torch")
    built = f"built for CUDA {probed.cuda}" if probed.cuda else "a build without CUDA"
    found = f"{probed.torch}, {built}"
    if probed.cuda or not has_gpu():
        return Finding("torch", "ok", found)
    found += ", in a machine with an NVIDIA device"
    return Finding("torch", "missing", found, _ON_A_GPU, "pip install --force-reinstall torch")


def _driver(probed: Probe, checked: DriverCheck) -> Finding:
    version = checked.version
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden in ("", "-1", "NoDevFiles"):
        found = f"{version or 'found'}; CUDA_VISIBLE_DEVICES={hidden!r} hides every device"
        return Finding("driver", "missing", found, _ON_A_GPU, "unset CUDA_VISIBLE_DEVICES")
    if checked.why and checked.present:
        return Finding("driver", "broken", checked.why, "telemetry, and every scenario on a GPU", _mend_of(checked.why))
    if probed.cuda_error and (version or has_gpu()):
        mend = "nvidia-smi says more; after an update of the driver, reboot"
        return Finding("driver", "broken", f"{version or 'found'}; torch: {probed.cuda_error}", _ON_A_GPU, mend)
    if version or len(probed.devices) > 1:
        devices = f", {', '.join(checked.devices)}" if checked.devices else ""
        return Finding("driver", "ok", f"{version or 'it answers; its version is not shown here'}{devices}")
    if has_gpu():
        mend = "install the NVIDIA driver that your distribution packages"
        return Finding("driver", "missing", "an NVIDIA device without its driver", _ON_A_GPU, mend)
    return Finding("driver", "missing", "none, and no NVIDIA device", _ON_A_GPU, "a machine with an NVIDIA GPU")


def _devices(probed: Probe) -> list[Finding]:
    found = []
    for number, (device, capability) in enumerate(zip(probed.devices, probed.capabilities, strict=True), start=-1):
        memory = f"{device.memory_bytes / GiB:.0f} GiB"
        if device.kind == "cpu":
            cores = len(os.sched_getaffinity(0))
            told = f"{device.name}, {cores} core{'s' * (cores > 1)} to run on, {capability}, {memory}"
            found.append(Finding("cpu", "ok", told))
        else:
            told = f"{device.name}, compute capability {capability}, {memory}, {device.uuid}"
            found.append(Finding(f"cuda:{number}", "ok", told))
    return found


def _cupy() -> Finding:
    have, cuda, extra = installed(*CUPY), torch_cuda(), fitting_cupy()
    lacking = partial(Finding, "CuPy", "missing", enables="the CUDA C++ lessons")
    if cuda in (None, "no torch"):
        return lacking(f"{have or 'not installed'}; it goes with a torch built for CUDA", mend=_torch_for_cuda())
    install = f"pip install 'gpulab[{extra}]'"
    if have is None:
        return lacking("not installed", mend=install)
    package = have.split()[0]
    if package.startswith("cupy-cuda") and package != f"cupy-{extra}x":
        mend = f"pip uninstall -y {package} && {install}"
        return Finding("CuPy", "broken", f"{have}, beside a torch for CUDA {cuda}", "the CUDA C++ lessons", mend)
    return Finding("CuPy", "ok", have)


def _triton() -> Finding:
    if have := installed("triton"):
        return Finding("Triton", "ok", have)
    enables = "the Triton lessons, torch.compile on a GPU"
    if torch_cuda() in (None, "no torch"):
        return Finding("Triton", "missing", "it comes with a torch built for CUDA", enables, _torch_for_cuda())
    return Finding("Triton", "missing", "not installed", enables, "pip install triton")


def _jax() -> Finding:
    if have := installed("jax"):
        return Finding("JAX", "ok", have)
    return Finding("JAX", "missing", "not installed", "the JAX lesson", "pip install jax")


def _compiler() -> Finding:
    if have := compiler():
        return Finding("compiler", "ok", have)
    mend = next((how for tool, how in _INSTALLERS.items() if shutil.which(tool)), "install g++")
    return Finding("compiler", "missing", "no C++ compiler", "torch.compile on a CPU", mend)


def _terminal() -> Finding:
    size = shutil.get_terminal_size()
    facts = [
        f"{size.columns}x{size.lines}" if sys.stdout.isatty() else "stdout is no terminal",
        "UTF-8" if terminal.shows_unicode() else f"ASCII (locale {terminal.locale()})",
        terminal.colours(),
    ]
    facts += ["in tmux"] if os.environ.get("TMUX") else []
    facts += ["over SSH: the screen is drawn twice a second"] if terminal.over_ssh() else []
    if terminal.shows_unicode():
        return Finding("terminal", "ok", ", ".join(facts))
    mend = "tmux -u attach" if terminal.tmux_shows_unicode() is False else "export LC_ALL=C.UTF-8"
    return Finding("terminal", "missing", ", ".join(facts), "finer drawing; everything has an ASCII form", mend)


def _run_files() -> Finding:
    folder = default_path("x").parent
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if there.is_dir() and os.access(there, os.W_OK):
        return Finding("run files", "ok", str(folder))
    mend = "export XDG_STATE_HOME=FOLDER, one that can be written"
    return Finding("run files", "broken", f"{there} cannot be written", "runs without --output", mend)


def _mend_of(why: str) -> str:
    """A driver's fault is mended by the system, and its words say how; here they are as one step."""
    if "reboot" in why:
        return "reboot"
    return "nvidia-smi; then look at the kernel's log (dmesg | grep -i nvrm)"


def _torch_for_cuda() -> str:
    return "pip install --force-reinstall torch" if has_gpu() else "a machine with an NVIDIA GPU"
