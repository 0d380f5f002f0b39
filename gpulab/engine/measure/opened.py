"""A job that is open in a process which measures nothing: what it builds variants with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from gpulab.core.jobs import Measure, ScenarioFile, TimeFunctions
from gpulab.core.payloads import Choice
from gpulab.engine.build.build import Builder
from gpulab.engine.build.lab import WorkerLab
from gpulab.engine.build.load import load
from gpulab.engine.processes.device import open_device, waiter
from gpulab.engine.processes.reporting import Reporter
from gpulab.engine.ranks.builds import builder_of
from gpulab.engine.ranks.group import threads_of_rank
from gpulab.engine.ranks.ranks import Ranks
from gpulab.engine.ranks.ranks import start as start_ranks
from gpulab.features import modules
from gpulab.scenario import Scenario

_LAB_FEATURES = modules("lab")


@dataclass(frozen=True)
class OpenedJob:
    """An open device, a file that has run, and the other ranks where the scenario has several."""

    device: torch.device
    wait: Callable[[], None]
    """Returns once the device is idle."""
    scenario: Scenario
    builder: Builder
    ranks: Ranks | None

    def close(self) -> None:
        """End the other ranks."""
        if self.ranks is not None:
            self.ranks.close()


def open_job(
    job: Measure | TimeFunctions, choices: Iterable[Choice], reporter: Reporter
) -> OpenedJob:
    """Open the device and run the file. DeviceError, or whatever the file raises."""
    ranks = start_ranks(job, job.seed or 0)  # while no device is open
    device, info = open_device(job.device, threads_of_rank(job.threads, job.ranks))
    wait = waiter(device) or _nothing
    scenario = load(job.subject)
    rank = ranks.join(device, reporter) if ranks else None
    lab = WorkerLab(device, info, reporter.position, rank)
    params = dict(job.subject.params) if isinstance(job.subject, ScenarioFile) else {}
    builder = builder_of(lab, params, job.seed or 0, wait, ranks)
    for feature in _LAB_FEATURES:
        feature.add_to_lab(job, builder, reporter, None, choices, first=False)
    return OpenedJob(device, wait, scenario, builder, ranks)


def _nothing() -> None:
    pass
