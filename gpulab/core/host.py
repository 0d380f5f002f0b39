"""The name of this machine, and the names of files that each of many tasks writes for itself."""

from __future__ import annotations

import os
import re

from gpulab.core.limits import TEXT_LENGTH
from gpulab.core.text import cut, one_line

HOST = "GPULAB_HOST"
"""Where the system's own name is that of a container: the node that it is on."""
_TASKS = (
    "SLURM_PROCID",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "RANK",
    "JOB_COMPLETION_INDEX",
)
"""Where launchers say which task of a job a process is: Slurm, MPI, torchrun, Kubernetes."""


def host_name() -> str:
    """As `GPULAB_HOST` says, else as the system does."""
    return cut(one_line(os.environ.get(HOST) or os.uname().nodename), TEXT_LENGTH)


def task() -> int:
    """The number of this task among those of its job; 0 outside of one."""
    for name in _TASKS:
        value = os.environ.get(name, "")
        if re.fullmatch("[0-9]{1,9}", value):
            return int(value)
    return 0


def with_task(name: str) -> str:
    """The name of a file in which %N is the host (up to its first dot), %t the task, %% a %."""
    host = host_name().partition(".")[0].replace("/", "-")
    values = {"%N": host, "%t": str(task()), "%%": "%"}
    return re.sub("%[Nt%]", lambda found: values[found[0]], name)
