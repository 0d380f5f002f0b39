"""What a process does that has imported torch: conduct measuring processes, or measure the
ceilings.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from functools import partial

from gpulab.core.events import RunInvalid, WorkerReady
from gpulab.core.finding import finding
from gpulab.core.jobs import Calibrate, Measure, TimeFunctions
from gpulab.core.payloads import Choice
from gpulab.core.statuses import Stage
from gpulab.engine.build import compiled
from gpulab.engine.measure.handover import Progress
from gpulab.engine.measure.runner import Runner
from gpulab.engine.processes.channel import Channel, SampleBuffer, WorkerPosition
from gpulab.engine.processes.children import Pipes
from gpulab.engine.processes.conductor import Ask, Begin, Conductor, Tell
from gpulab.engine.processes.device import environment, open_device, waiter
from gpulab.engine.processes.failure import first_line
from gpulab.engine.processes.forking import Forks
from gpulab.engine.processes.integrity import LabFunctions
from gpulab.engine.processes.layout import in_own_layout, seed_of
from gpulab.engine.processes.reporting import Reporter
from gpulab.features.goodput.worker import Profiler
from gpulab.features.roofline.calibration import Calibration

_MOST_NAMES = 10
_LAYOUT = 4
"""Added to the seed of a process, so that its layout says nothing of its order."""


def conduct(
    channel: Channel,
    job: Measure | TimeFunctions,
    buffer: SampleBuffer,
    position: WorkerPosition,
    forks: Forks,
    numbers: range,
    pipes: Pipes[Progress],
) -> None:
    """Fork the measuring processes of these numbers, and what profiles; returns when all events
    have left.
    """
    reporter, guarded = Reporter(channel, job, position), _Guard(channel, position)

    def process(number: int, begin: Begin, tell: Tell, ask: Ask) -> None:
        seed = seed_of(job.seed, number)
        runner = Runner(job, reporter, buffer, number, numbers.start, seed, begin, tell, ask)
        guarded(lambda: in_own_layout(random.Random(seed + _LAYOUT), runner.serve), reporter)

    def profile(names: Sequence[str], choices: Sequence[Choice], wait: Callable[[], None]) -> None:
        profiler = Profiler(job, names, choices, reporter)
        failure: BaseException | None = None
        try:
            profiler.prepare()
        except BaseException as error:
            failure = error
        wait()
        position.adopt()
        channel.adopt()
        reporter.stage(Stage.PROFILE)
        guarded(partial(_serve_profile, profiler, failure), reporter)

    Conductor(job, forks, reporter, process, profile, numbers).serve(pipes)
    channel.adopt()
    channel.flush()


def _serve_profile(profiler: Profiler, failure: BaseException | None) -> None:
    if failure is not None:
        raise failure
    profiler.serve()


def calibrate(channel: Channel, job: Calibrate, position: WorkerPosition) -> None:
    """Measure every ceiling of the device."""
    reporter = Reporter(channel, job, position)
    _Guard(channel, position)(lambda: _calibrate(job, reporter), reporter)


class _Guard:
    """Where code of a scenario runs: whatever it does ends as an event, and the lab is compared
    with what it was.
    """

    def __init__(self, channel: Channel, position: WorkerPosition) -> None:
        self._channel, self._position = channel, position
        self._lab_functions = LabFunctions()

    def __call__(self, work: Callable[[], None], reporter: Reporter) -> None:
        self._channel.adopt()
        reporter.compare_lab = self._compare_lab
        try:
            work()
        except BaseException as error:  # from where no code of a scenario was expected to raise
            if self._position.stage == Stage.PROFILE:
                reporter.notice("profiling_failed", message=first_line(error))
            else:
                reporter.failed(None, self._position.stage, error)
        reporter.compare_lab()
        compiled.end()
        self._channel.flush()

    def _compare_lab(self) -> None:
        if replaced := self._lab_functions.replaced():
            reason = finding(
                "lab_functions_replaced", names=replaced[:_MOST_NAMES], count=len(replaced)
            )
            self._channel.emit(RunInvalid(reason=reason))


def _calibrate(job: Calibrate, reporter: Reporter) -> None:
    try:
        reporter.stage(Stage.LOAD)
        device, info = open_device(job.device, job.threads)
        reporter.channel.emit(WorkerReady(pid=os.getpid(), device=info, environment=environment()))
        reporter.wait = waiter(device)
        reporter.stage(Stage.CEILINGS)
        Calibration(reporter, device, info, reporter.wait).everything()
    except BaseException as error:
        reporter.failed(None, reporter.position.stage, error)
