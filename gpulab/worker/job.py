"""The worker's job, whichever it is, to its last event."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence

from gpulab.protocol.events import RunInvalid, WorkerDone, WorkerReady
from gpulab.protocol.finding import finding
from gpulab.protocol.jobs import AnyJob, Calibrate
from gpulab.protocol.statuses import Stage
from gpulab.worker.building import compiled
from gpulab.worker.calibration.calibration import Calibration
from gpulab.worker.conductor import Ask, Begin, Conductor
from gpulab.worker.process.channel import Channel
from gpulab.worker.process.device import environment, open_device, waiter
from gpulab.worker.process.exception_text import first_line
from gpulab.worker.process.forking import Forks
from gpulab.worker.process.integrity import LabFunctions
from gpulab.worker.process.layout import in_own_layout
from gpulab.worker.process.position import WorkerPosition
from gpulab.worker.process.reporting import Reporter
from gpulab.worker.process.sample_buffer import SampleBuffer
from gpulab.worker.profiling.profiler import Profiler
from gpulab.worker.runner import Runner, seed_of

_MOST_NAMES = 10
_LAYOUT = 4
"""Added to the seed of a process, so that its layout says nothing of its order."""


def serve(channel: Channel, job: AnyJob, buffer: SampleBuffer, position: WorkerPosition, forks: Forks) -> None:
    """Do a job; returns when the last event has left."""
    lab_functions = LabFunctions()
    reporter = Reporter(channel, job, position)

    def guarded(work: Callable[[], None]) -> None:
        """Where the code of a scenario runs: whatever it does ends as an event, and the lab is compared at the end."""
        channel.adopt()
        try:
            work()
        except BaseException as error:  # from where no code of a scenario was expected to raise
            if position.stage == Stage.PROFILE:
                reporter.notice("profiling_failed", message=first_line(error))
            else:
                reporter.failed(None, position.stage, error)
        if replaced := lab_functions.replaced():
            reason = finding("lab_functions_replaced", names=replaced[:_MOST_NAMES], count=len(replaced))
            channel.emit(RunInvalid(reason=reason))
        compiled.end()
        channel.flush()

    if isinstance(job, Calibrate):
        guarded(lambda: _calibrate(job, reporter))
    else:

        def process(number: int, begin: Begin, ask: Ask) -> None:
            seed = seed_of(job.seed, number)
            runner = Runner(job, reporter, buffer, number, seed, begin, ask)
            guarded(lambda: in_own_layout(random.Random(seed + _LAYOUT), runner.serve))

        def profile(names: Sequence[str]) -> None:
            channel.adopt()
            reporter.stage(Stage.PROFILE)
            guarded(lambda: Profiler(job, names, reporter).serve())

        conductor = Conductor(job, forks, reporter, process, profile)
        conductor.serve()
        channel.adopt()
        if conductor.left_running:
            reporter.notice("processes_left_running", count=conductor.left_running)
    position.move(Stage.END)
    channel.emit(WorkerDone(sent=channel.sent))
    channel.flush()


def _calibrate(job: Calibrate, reporter: Reporter) -> None:
    """Measure every ceiling of the device."""
    try:
        reporter.stage(Stage.LOAD)
        device, info = open_device(job.device, job.threads)
        reporter.channel.emit(WorkerReady(pid=os.getpid(), device=info, environment=environment()))
        reporter.wait = waiter(device)
        reporter.stage(Stage.CEILINGS)
        Calibration(reporter, device, info, reporter.wait).everything()
    except BaseException as error:
        reporter.failed(None, reporter.position.stage, error)
