"""The environment a worker is started with."""

from __future__ import annotations

import os
from collections.abc import Mapping

from gpulab.protocol.jobs import AnyJob, ScenarioFile, TimedJob, subject_of

# Placement decides what a fresh allocation costs: with the default thresholds one and the same chain of
# operations ran 2x faster in some processes than in others.
_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
}
# A process that compiled waits 6 seconds at its end for inductor's helper processes; threads do as well.
_COMPILER = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}

FOLDER = "{folder}"
"""Stands for a folder of the run in the values of a scenario's variables."""


def usual_environment(threads: int) -> dict[str, str]:
    """Ours, with the allocator and the number of threads pinned."""
    pinned = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    return {**os.environ, **_MALLOC, **pinned, **_COMPILER, "KINETO_LOG_LEVEL": "99"}


def worker_environment(job: AnyJob) -> dict[str, str]:
    """The usual one, and what the scenario asks for."""
    subject = subject_of(job)
    own = _own(job, subject.env) if isinstance(subject, ScenarioFile) else {}
    variables: dict[str, str | None] = {**usual_environment(job.threads), **own}
    return {name: value for name, value in variables.items() if value is not None}


def _own(job: AnyJob, variables: Mapping[str, str | None]) -> dict[str, str | None]:
    """What a scenario asks for; a folder that it names is of the run, and empty at first."""
    folder = job.folder if isinstance(job, TimedJob) else None
    return {name: value and value.replace(FOLDER, folder or "") for name, value in variables.items()}
