"""What this machine has of what scenarios need, found out without importing torch or the driver's library."""

from __future__ import annotations

import ast
import os
import shutil
from contextlib import suppress
from functools import cache
from importlib import util
from pathlib import Path

_OF_A_GPU = ("cuda", "cupy", "triton")
CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy")


def missing(need: str) -> str | None:
    """Why the machine does not meet a need, or None where it does."""
    return _LOOKS[need]()


def first_missing(needs: tuple[str, ...], device: str | None = None) -> str | None:
    """The first need that is not met, here or on the device that was chosen, as `needs cuda: why`."""
    on_cpu = {need: "this run is on the CPU" for need in _OF_A_GPU} if device == "cpu" else {}
    return next((f"needs {need}: {why}" for need in needs if (why := missing(need) or on_cpu.get(need))), None)


def default_device() -> str:
    """`cuda:0` where torch can use a GPU, else `cpu`."""
    return "cpu" if missing("cuda") else "cuda:0"


@cache
def _no_cuda() -> str | None:
    built = torch_cuda()
    if built == "no torch":
        return "torch is not installed"
    if built is None:
        return "this torch is a build without CUDA"
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1", "NoDevFiles"):
        return "CUDA_VISIBLE_DEVICES hides every device"
    return None if has_gpu() else "no NVIDIA device in this machine"


def has_gpu() -> bool:
    """Whether the system shows an NVIDIA device, whatever torch makes of it."""
    return any((*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("dxg")))


def torch_cuda() -> str | None:
    """The CUDA version torch was built with, None for a CPU build; "no torch" where there is none. Never imports it."""
    spec = util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return "no torch"
    tree = ast.parse((Path(spec.submodule_search_locations[0]) / "version.py").read_text())
    for node in tree.body:
        target = node.target if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [None])[0]
        if isinstance(target, ast.Name) and target.id == "cuda" and isinstance(node, (ast.Assign, ast.AnnAssign)):
            return ast.literal_eval(node.value) if node.value else None
    return None


def installed(*packages: str) -> str | None:
    """The first of the packages that is installed, as `name version`."""
    from importlib import metadata  # as slow as all the rest of a listing, and seldom needed

    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            return f"{package} {metadata.version(package)}"
    return None


def fitting_cupy() -> str:
    """The extra whose CuPy fits this torch: another one loads another CUDA's libraries beside it, and fails."""
    return "cuda12" if (torch_cuda() or "").startswith("12") else "cuda13"


@cache
def _no_cupy() -> str | None:
    return _no_cuda() or (
        None if installed(*CUPY) else f"CuPy is not installed: pip install 'gpulab[{fitting_cupy()}]'"
    )


@cache
def _no_triton() -> str | None:
    return _no_cuda() or (None if installed("triton") else "Triton is not installed: pip install triton")


@cache
def _no_jax() -> str | None:
    return None if installed("jax") else "JAX is not installed: pip install jax"


@cache
def _no_compiler() -> str | None:
    return None if compiler() else "no C++ compiler: install g++"


def compiler() -> str | None:
    """The path of the C++ compiler that torch would take."""
    return shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")


_LOOKS = {"cuda": _no_cuda, "cupy": _no_cupy, "triton": _no_triton, "jax": _no_jax, "compiler": _no_compiler}
