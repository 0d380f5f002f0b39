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


def _folder() -> Path:
    from platformdirs import user_data_path

    return user_data_path("gpulab") / "counters"


def sampler_command() -> list[str] | None:
    """Return what starts the sampler; None where there is no Python for it."""
    python = Path(os.environ.get(VARIABLE) or _folder() / "bin" / "python")
    sampler = str(Path(__file__).with_name("sampler.py"))
    if python.is_dir():
        return [sys.executable, "-I", sampler, str(python)]
    return [str(python), "-I", sampler] if python.exists() else None


def install_line() -> str:
    """The command that makes the environment, or brings it up to date."""
    python = os.environ.get(VARIABLE)
    if python:
        target = f" --target {python}" * Path(python).is_dir()
        return f"{'' if target else f'{python} -m '}pip install -U{target} cupti-python"
    folder = shown_path(_folder())
    return f"python3 -m venv {folder} && {folder}/bin/pip install -U cupti-python"


def dcgm_process() -> str:
    """The name of a process of DCGM, which reads the same counters; empty where none runs."""
    running = {process.info["name"] for process in psutil.process_iter(["name"])}
    return ", ".join(sorted(running & {"nv-hostengine", "dcgm-exporter"}))
