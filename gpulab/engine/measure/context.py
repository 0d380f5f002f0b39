"""What the parts of a measuring process share, and how it comes to be: the device is opened, the
scenario's file is run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import torch

from gpulab.core.events import WorkerReady
from gpulab.core.jobs import Measure, ScenarioFile, TimeFunctions
from gpulab.core.machine import Device
from gpulab.core.payloads import Choice
from gpulab.core.statuses import Stage
from gpulab.engine.build.build import Build, Builder
from gpulab.engine.build.functions import kind_of
from gpulab.engine.build.lab import Chooser, RankOfLab, WorkerLab
from gpulab.engine.build.load import load
from gpulab.engine.measure.clock import WallClock
from gpulab.engine.measure.device_clock import clocks_for
from gpulab.engine.measure.process_result import ProcessResult
from gpulab.engine.processes.channel import SampleBuffer
from gpulab.engine.processes.child import Turn
from gpulab.engine.processes.device import (
    environment,
    limit_to_free_memory,
    open_device,
    waiter,
    warm_context,
)
from gpulab.engine.processes.reporting import Reporter
from gpulab.engine.ranks.builds import RankedClock, builder_of
from gpulab.engine.ranks.group import threads_of_rank
from gpulab.engine.ranks.ranks import Ranks
from gpulab.engine.ranks.ranks import start as start_ranks
from gpulab.features import modules
from gpulab.features.checks.other_values import Case
from gpulab.features.checks.stepping import warm_checks
from gpulab.features.checks.worker import Checker
from gpulab.features.roofline.calibration import Calibration
from gpulab.scenario import Param, Scenario, Variant

_LAB_FEATURES = modules("lab")  # before any process is forked


@dataclass(frozen=True)
class Process:
    """A measuring process. `number` counts from 0; `fork_server` is the number of the first process
    of its fork server.
    """

    number: int
    seed: int
    fork_server: int
    buffer: SampleBuffer
    turn: Turn


@dataclass(frozen=True)
class LoadedJob:
    """An open device, and the variants of a file that has run."""

    device: torch.device
    info: Device
    wait: Callable[[], None] | None
    variants: list[Variant]
    calibration: Calibration
    rank: RankOfLab
    ranks: Ranks | None
    """The others, where the scenario has several."""


def load_job(
    job: Measure | TimeFunctions, reporter: Reporter, ranks: Ranks | None, *, first: bool
) -> LoadedJob:
    """Open the device and run the scenario's file. Only the first process sends an event of it."""
    device, info = open_device(job.device, threads_of_rank(job.threads, job.ranks))
    if job.increasing_memory and device.type == "cpu":
        limit_to_free_memory()
    if first:  # the worker's first process is the parent of everything that belongs to the run
        ready = WorkerReady(pid=os.getpgid(0), device=info, environment=environment())
        reporter.channel.emit(ready)
    wait = waiter(device)
    if wait is not None and ranks is not None:
        wait = ranks.watched(wait)
    reporter.wait = wait
    calibration = Calibration(reporter, device, info, wait)
    scenario = load(job.subject)
    early = not first and not job.starts_matter
    # room for the contexts of sixteen processes, half a gigabyte each
    if early and device.type == "cuda" and info.memory_bytes >= (64 << 30):
        warm_context(device)
        warm_checks(device)
    present = [variant for variant in job.subject.variants if variant.missing is None]
    variants = [scenario.variants[variant.name] for variant in present]
    if first and isinstance(job, TimeFunctions):
        for kind in filter(None, map(kind_of, variants)):
            reporter.found(kind, explains=True)
    rank = ranks.join(device, reporter) if ranks else RankOfLab()
    return LoadedJob(device, info, wait, variants, calibration, rank, ranks)


@dataclass
class WorkerContext:
    """One job on one device, in one measuring process.

    `clock` is the verdict's; `other_clock`, on a GPU, the one beside it.
    """

    job: Measure | TimeFunctions
    number: int
    """Of this process, from 0."""
    seed: int
    """Of this process."""
    device: torch.device
    reporter: Reporter
    buffer: SampleBuffer
    builder: Builder
    tuner: Chooser | None
    checker: Checker
    clock: WallClock
    other_clock: WallClock | None
    with_phases: set[str] = field(default_factory=set)
    """Variants whose steps have phases."""
    checked: set[str] = field(default_factory=set)
    """Variants whose output is compared with the baseline's."""

    @property
    def choices(self) -> list[Choice]:
        return self.tuner.choices if self.tuner else []

    @property
    def one_at_a_time(self) -> bool:
        """Return whether builds may not stay while another variant runs."""
        return self.job.exclusive or self.job.increasing_memory

    @property
    def wall_clock(self) -> WallClock:
        if self.other_clock is not None and self.other_clock.name == "wall":
            return self.other_clock
        return self.clock

    def close(self, variant: Variant, build: Build) -> None:
        self.reporter.position.move(Stage.TEARDOWN, variant.name)
        try:
            build.close()
        except BaseException as error:
            self.reporter.failed(variant.name, Stage.TEARDOWN, error)


@dataclass(frozen=True)
class OpenedJob:
    """An open device and a file that has run, in a process that measures nothing."""

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
    wait = waiter(device) or (lambda: None)
    scenario = load(job.subject)
    rank = ranks.join(device, reporter) if ranks else None
    lab = WorkerLab(device, info, reporter.position, rank)
    builder = builder_of(lab, _params_of(job), job.seed or 0, wait, ranks)
    for feature in _LAB_FEATURES:
        feature.add_to_lab(job, builder, reporter, None, choices, first=False)
    return OpenedJob(device, wait, scenario, builder, ranks)


def _params_of(job: Measure | TimeFunctions) -> dict[str, Param]:
    return dict(job.subject.params) if isinstance(job.subject, ScenarioFile) else {}


def open_context(
    job: Measure | TimeFunctions,
    loaded: LoadedJob,
    before: ProcessResult,
    reporter: Reporter,
    process: Process,
) -> WorkerContext:
    """The context of a process, which continues from what the one `before` left."""
    lab = WorkerLab(loaded.device, loaded.info, reporter.position, loaded.rank)
    clock, other_clock = clocks_for(job, loaded.device, loaded.info, loaded.wait)
    builder = builder_of(lab, _params_of(job), process.seed, loaded.wait, loaded.ranks)
    if loaded.ranks is not None:
        clock = RankedClock(loaded.wait, clock.flush, loaded.ranks)
        other_clock = None  # events on one device say nothing of the others
    cases: Sequence[Case] = job.cases if isinstance(job, Measure) else ()
    choices = tuple(before.choices)
    for feature in _LAB_FEATURES:
        feature.add_to_lab(job, builder, reporter, clock, choices, first=not process.number)
    return WorkerContext(
        job=job,
        number=process.number,
        seed=process.seed,
        device=loaded.device,
        reporter=reporter,
        buffer=process.buffer,
        builder=builder,
        tuner=lab.tuner,
        checker=Checker(
            builder, reporter.channel.emit, cases, increasing_memory=job.increasing_memory
        ),
        clock=clock,
        other_clock=other_clock,
        with_phases=before.with_phases,
        checked=before.checked,
    )


def nothing_before(job: Measure | TimeFunctions, variants: list[Variant]) -> ProcessResult:
    """Return what the first process continues from. Outputs are compared of no variants without the
    baseline's, nor of those that are there for scale alone.
    """
    checked = set()
    if isinstance(job, Measure) and variants and variants[0].unchecked is None:
        checked = {
            variant.name
            for variant in variants
            if variant.unchecked is None and variant.against is not None
        }
    choices = [] if job.retune else list(job.choices)
    return ProcessResult(exclusive=job.exclusive, checked=checked, choices=choices)
