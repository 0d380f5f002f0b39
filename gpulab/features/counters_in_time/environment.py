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


def _python() -> Path:
    from platformdirs import user_data_path

    folder = user_data_path("gpulab") / "counters"
    return Path(os.environ.get(VARIABLE) or folder / "bin" / "python")


def sampler_command() -> list[str] | None:
    """Return what starts the sampler; None where there is no Python for it."""
    python, sampler = _python(), str(Path(__file__).with_name("sampler.py"))
    if python.is_dir():
        return [sys.executable, "-I", sampler, str(python)]
    return [str(python), "-I", sampler] if python.exists() else None


def install_line() -> str:
    """The command that makes the environment, or brings it up to date."""
    python = _python()
    if python.is_dir():
        return f"pip install -U --target {python} cupti-python"
    if VARIABLE in os.environ:
        return f"{python} -m pip install -U cupti-python"
    folder = shown_path(python.parents[1])
    return f"python3 -m venv {folder} && {folder}/bin/pip install -U cupti-python"


def dcgm_process() -> str:
    """The name of a process of DCGM, which reads the same counters; empty where none runs."""
    running = {process.info["name"] for process in psutil.process_iter(["name"])}
    return ", ".join(sorted(running & {"nv-hostengine", "dcgm-exporter"}))
