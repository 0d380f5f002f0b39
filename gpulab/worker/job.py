"""The worker's job, whichever it is, to its last event."""

from __future__ import annotations

from gpulab.protocol.events import RunInvalid, WorkerDone
from gpulab.protocol.finding import finding
from gpulab.protocol.jobs import AnyJob, Profile
from gpulab.protocol.statuses import Stage
from gpulab.worker.building import compiled
from gpulab.worker.process.channel import Channel
from gpulab.worker.process.exception_text import first_line
from gpulab.worker.process.integrity import LabFunctions
from gpulab.worker.process.position import WorkerPosition
from gpulab.worker.process.reporting import Reporter
from gpulab.worker.process.sample_buffer import SampleBuffer
from gpulab.worker.profiling.profiler import Profiler
from gpulab.worker.runner import Runner

_MOST_NAMES = 10


def serve(channel: Channel, job: AnyJob, buffer: SampleBuffer, position: WorkerPosition) -> None:
    """Do a job; returns when the last event has left."""
    lab_functions = LabFunctions()
    reporter = Reporter(channel, job, position)
    try:
        if isinstance(job, Profile):
            Profiler(job, reporter).serve()
        else:
            Runner(job, reporter, buffer).serve()
    except BaseException as error:  # from where no code of a scenario was expected to raise
        if isinstance(job, Profile):
            reporter.notice("profiling_failed", message=first_line(error))
        else:
            reporter.failed(None, position.stage, error)
    if replaced := lab_functions.replaced():
        reason = finding("lab_functions_replaced", names=replaced[:_MOST_NAMES], count=len(replaced))
        channel.emit(RunInvalid(reason=reason))
    compiled.end()
    position.move(Stage.END)
    channel.emit(WorkerDone(sent=channel.sent))
    channel.flush()
