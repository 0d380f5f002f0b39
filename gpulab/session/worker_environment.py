"""The environment a worker is started with."""

from __future__ import annotations

import os

from gpulab.protocol.jobs import AnyJob, ScenarioFile, subject_of

# Placement decides what a fresh allocation costs: with the default thresholds one and the same chain of
# operations ran 2x faster in some processes than in others.
_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
}


def worker_environment(job: AnyJob) -> dict[str, str]:
    """Ours, with the allocator and the number of threads pinned, and what the scenario asks for."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(job.threads))
    subject = subject_of(job)
    own = subject.env if isinstance(subject, ScenarioFile) else {}
    variables: dict[str, str | None] = {**os.environ, **_MALLOC, **threads, "KINETO_LOG_LEVEL": "99", **own}
    return {name: value for name, value in variables.items() if value is not None}
