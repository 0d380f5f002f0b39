"""What this machine has of what scenarios need, without importing torch or the driver's library."""

from __future__ import annotations

import ast
import os
import re
import shutil
from contextlib import suppress
from functools import cache
from importlib import util
from pathlib import Path

from gpulab.catalog.findings import (
    compiler_not_installed,
    devices_hidden,
    no_gpu,
    not_installed,
    run_on_cpu,
    torch_broken,
    torch_not_installed,
    torch_without_cuda,
)
from gpulab.catalog.source import assigned
from gpulab.core.files import read_regular
from gpulab.core.findings import Finding
from gpulab.core.limits import SOURCE_BYTES

CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy")
NVRTC = "cuda-bindings"
"""What compiles CUDA C++: it calls NVRTC, which comes with torch for CUDA."""
NO_TORCH = "no torch"
NEEDS = {"G": "a GPU", "P": "a package", "C": "a compiler"}
"""The letters of lists for what scenarios need and the machine lacks."""
_HIDDEN = ("", "-1", "NoDevFiles")


def missing(need: str) -> Finding | None:
    """Why the machine does not meet a need, or None where it does."""
    return _MISSING[need]()


def first_missing(needs: tuple[str, ...], device: str | None = None) -> Finding | None:
    """The first need that is not met, here or on the device that was chosen; its values hold the
    `need`. Everything needs a torch that is not broken.
    """
    if (broken := broken_torch()) is not None:
        return broken
    for need in needs:
        reason = missing(need)
        if reason is None and device == "cpu" and need in ("cuda", "cupy", "triton"):
            reason = run_on_cpu()
        if reason is not None:
            return Finding(code=reason.code, values={**reason.values, "need": need})
    return None


def default_device() -> str:
    """`cuda:0` where torch can use a GPU, else `cpu`."""
    return "cpu" if missing("cuda") else "cuda:0"


@cache
def _no_cuda() -> Finding | None:
    cuda = torch_cuda()
    if cuda == NO_TORCH:
        return broken_torch() or torch_not_installed()
    if cuda is None:
        return torch_without_cuda()
    if devices_are_hidden():
        return devices_hidden()
    return None if has_gpu() else no_gpu()


def devices_are_hidden() -> bool:
    """Return whether CUDA_VISIBLE_DEVICES hides every device."""
    return os.environ.get("CUDA_VISIBLE_DEVICES") in _HIDDEN


def has_gpu() -> bool:
    """Return whether the system shows an NVIDIA device, whether torch can use it or not."""
    return any((*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("dxg")))


def torch_cuda() -> str | None:
    """The CUDA version torch was built with, None for a CPU build, NO_TORCH where there is none
    that can be imported.
    """
    versions = _torch_versions()
    return versions.get("cuda") if isinstance(versions, dict) else NO_TORCH


def torch_hip() -> str | None:
    """The ROCm version that torch was built with; None where it was not."""
    versions = _torch_versions()
    return versions.get("hip") if isinstance(versions, dict) else None


def torch_version() -> str | None:
    """Such as 2.13; None where there is none."""
    versions = _torch_versions()
    version = versions.get("__version__") if isinstance(versions, dict) else None
    return ".".join(version.split(".")[:2]) if version else None


def broken_torch() -> Finding | None:
    """Return what is wrong with the installed torch, as far as one sees without importing it."""
    versions = _torch_versions()
    return versions if isinstance(versions, Finding) else None


def failed_import_of_torch(message: str = "", code: int | None = None) -> Finding:
    """Why a process could not import torch. `code`: that it exited with."""
    folder = _torch_folder()
    if folder is None:
        return torch_not_installed()
    return torch_broken(folder=folder, message=message, code=code)


def _torch_folder() -> str | None:
    spec = util.find_spec("torch")
    if spec is None:
        return None
    return str([*(spec.submodule_search_locations or ()), spec.origin][0])


@cache
def _torch_versions() -> dict[str, str | None] | Finding | None:
    """Return what torch says of itself, without importing it; None where there is none."""
    folder = _torch_folder()
    if folder is None:
        return None
    path = Path(folder) / "version.py"
    try:
        tree = ast.parse(read_regular(path, SOURCE_BYTES))
    except OSError as error:
        return failed_import_of_torch(f"version.py, {error.strerror}")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return failed_import_of_torch(f"version.py, {getattr(error, 'msg', error)}")
    versions: dict[str, str | None] = {}
    for node in tree.body:
        match assigned(node):
            case [ast.Name(id="cuda" | "hip" | "__version__" as name), *_], ast.expr() as value:
                with suppress(ValueError):
                    versions[name] = ast.literal_eval(value)
    return versions


def gpu_model() -> str | None:
    """The model of the GPUs, such as H100 80GB HBM3; None where they differ, or it is unknown.

    Asked of the files of the driver: loading its library takes as long as all of the first screen.
    """
    models = set()
    for path in Path("/proc/driver/nvidia/gpus").glob("*/information"):
        with suppress(OSError):
            models.update(
                re.findall(r"^Model:\s*(?:NVIDIA )?(.+)$", path.read_text(), re.MULTILINE)
            )
    return models.pop() if len(models) == 1 else None


def short_need(missing: Finding) -> tuple[str, str] | None:
    """(a letter, a word or two) for what a scenario needs: of NEEDS. None of what it is not the
    machine that lacks it.
    """
    if missing.code == compiler_not_installed.code:
        return "C", "g++"
    if missing.code in (not_installed.code, torch_not_installed.code, torch_broken.code):
        return "P", str(missing.values.get("package", "torch"))
    return ("G", "a GPU") if "need" in missing.values else None


def installed(*packages: str) -> str | None:
    """The first of the packages that is installed, as `name version`."""
    from importlib import metadata  # as slow as all the rest of a listing, and seldom needed

    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            return f"{package} {metadata.version(package)}"
    return None


def _is_importable(module: str) -> bool:
    """Much faster than `installed`. A folder of that name without code has no origin."""
    spec = util.find_spec(module)
    return spec is not None and spec.origin is not None


def fitting_cupy() -> str:
    """The extra whose CuPy fits this torch: another one loads the libraries of another
    CUDA, and fails.
    """
    return "cuda12" if (torch_cuda() or "").startswith("12") else "cuda13"


@cache
def _no_cupy() -> Finding | None:
    if reason := _no_cuda():
        return reason
    for package, name in ((CUPY, "CuPy"), ((NVRTC,), NVRTC)):
        if not installed(*package):
            return not_installed(package=name, install=f"gpulab[{fitting_cupy()}]")
    return None


@cache
def _no_triton() -> Finding | None:
    if (reason := _no_cuda()) or _is_importable("triton"):
        return reason
    return not_installed(package="Triton", install="triton")


@cache
def _no_jax() -> Finding | None:
    if _is_importable("jax"):
        return None
    return not_installed(package="JAX", install="jax")


@cache
def _no_compiler() -> Finding | None:
    return None if compiler() else compiler_not_installed()


def compiler() -> str | None:
    """The path of the C++ compiler that torch would take."""
    return shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")


_MISSING = {
    "cuda": _no_cuda,
    "cupy": _no_cupy,
    "triton": _no_triton,
    "jax": _no_jax,
    "compiler": _no_compiler,
}
