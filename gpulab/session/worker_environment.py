"""The environment a worker is started with."""

from __future__ import annotations

import os
from collections.abc import Mapping

from gpulab.protocol.jobs import AnyJob, Measure, ScenarioFile, TimedJob, subject_of
from gpulab.protocol.statuses import Shows

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


def worker_environment(job: AnyJob) -> dict[str, str]:
    """Ours, with the allocator and the number of threads pinned, and what the scenario asks for."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(job.threads))
    subject = subject_of(job)
    own = _own(job, subject.env) if isinstance(subject, ScenarioFile) else {}
    lab = {**_MALLOC, **threads, **_COMPILER, "KINETO_LOG_LEVEL": "99"}
    variables: dict[str, str | None] = {**_compiled_code(job), **os.environ, **lab, **own}
    return {name: value for name, value in variables.items() if value is not None}


def _own(job: AnyJob, variables: Mapping[str, str | None]) -> dict[str, str | None]:
    """What a scenario asks for; a folder that it names is of the run, and empty at first."""
    folder = job.folder if isinstance(job, TimedJob) else None
    return {name: value and value.replace(FOLDER, folder or "") for name, value in variables.items()}


def _compiled_code(job: AnyJob) -> dict[str, str]:
    """Where the first process leaves what JAX and NVRTC compiled; torch and Triton have such a folder anyway."""
    if not isinstance(job, TimedJob) or job.folder is None:
        return {}
    if isinstance(job, Measure) and job.shows == Shows.CURVE:  # each process is to start from nothing
        return {}
    return {
        "GPULAB_KERNELS": f"{job.folder}/kernels",
        "JAX_COMPILATION_CACHE_DIR": f"{job.folder}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
