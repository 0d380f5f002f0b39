"""The Python that samples counters: an environment of its own, as cupti-python and torch need
different versions of CUPTI.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil

from gpulab.catalog.source import shown_path

VARIABLE = "GPULAB_COUNTERS_PYTHON"
"""A Python, or a folder of packages for this one."""
_SAMPLER = str(Path(__file__).with_name("sampler.py"))
_DCGM = ("nv-hostengine", "dcgm-exporter")


def _folder() -> Path:
    from platformdirs import user_data_path

    return user_data_path("gpulab") / "counters"


def sampler_command() -> list[str] | None:
    """Return what starts the sampler; None where there is no Python for it."""
    named = Path(os.environ.get(VARIABLE) or _folder() / "bin" / "python")
    if named.is_dir():
        return [sys.executable, "-I", _SAMPLER, str(named)]
    return [str(named), "-I", _SAMPLER] if named.exists() else None


def install_line() -> str:
    """The command that makes the environment, or completes it."""
    python = os.environ.get(VARIABLE)
    if python and Path(python).is_dir():
        return f"pip install -U --target {python} cupti-python"
    if python:
        return f"{python} -m pip install -U cupti-python"
    folder = shown_path(_folder())
    return f"python3 -m venv {folder} && {folder}/bin/pip install -U cupti-python"


def dcgm_process() -> str:
    """The name of a process of DCGM, which reads the same counters; empty where none runs."""
    names = (process.info["name"] for process in psutil.process_iter(["name"]))
    return next((name for name in names if name in _DCGM), "")
