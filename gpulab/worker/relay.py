"""The worker's first process: it forks conductors, which import torch, and gives one after the other its turn.

Where a conductor has torch's libraries is common to the processes that it forks, and short operations of a CPU come out
up to 10 % apart between two such places. So a run has several of them. They import at the same time, while nothing is
measured.
"""

from __future__ import annotations

import gc
import os
import random
import signal
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from math import ceil
from typing import NoReturn

from gpulab.analysis.statistics import FEWEST
from gpulab.protocol.events import Noticed, WorkerDone
from gpulab.protocol.finding import finding
from gpulab.protocol.jobs import AnyJob, Calibrate, Measure, TimeFunctions
from gpulab.protocol.statuses import Stage
from gpulab.worker.handover import Progress
from gpulab.worker.process import startup
from gpulab.worker.process.channel import Channel
from gpulab.worker.process.children import Child, Pipes
from gpulab.worker.process.forking import Forks, die_as
from gpulab.worker.process.layout import move_libraries, seed_of
from gpulab.worker.process.orphans import adopt_orphans
from gpulab.worker.process.position import WorkerPosition
from gpulab.worker.process.sample_buffer import SampleBuffer
from gpulab.worker.supervisor import work
from gpulab.worker.timing.plan import PROCESSES

_EACH, _SHARE = 2, 8
"""Processes of a conductor, and the share of those before it where that is more: a long run imports ever less often."""
_FEWEST_AT_ONCE = ceil(FEWEST / _EACH)
"""Conductors that import torch at the same time: for as many processes as a verdict needs, or all if cores are free."""
_BEFORE_TORCH = ("numpy", "asyncio", "email", "inspect", "typing_extensions", "unittest.mock", "urllib.request")
"""What torch imports: once here, and none of it is where a step spends its time."""
_SHORT_S = 5.0
"""A run that is shorter has one conductor: it is not made to wait for more."""
_LIBRARIES = 5
"""Added to a seed, so that the places say nothing of the data."""
Conduct = Callable[[range, Pipes[Progress]], None]


def serve(channel: Channel, job: AnyJob, buffer: SampleBuffer, position: WorkerPosition, forks: Forks) -> None:
    """Do a job; returns when the last event has left."""
    if isinstance(job, Calibrate):
        _import_torch()
        from gpulab.worker.job import calibrate

        calibrate(channel, job, position)
    else:

        def import_and_conduct(numbers: range, pipes: Pipes[Progress]) -> None:
            move_libraries(random.Random(seed_of(job.seed, numbers.start) + _LIBRARIES))
            _import_torch()
            from gpulab.worker.job import conduct

            gc.enable()
            conduct(channel, job, buffer, position, forks, numbers, pipes)

        left_running = _relay(job, forks, import_and_conduct)
        channel.adopt()
        if left_running:
            channel.emit(Noticed(finding=finding("processes_left_running", count=left_running)))
    position.move(Stage.END)
    channel.emit(WorkerDone(sent=channel.sent))
    channel.flush()


def _relay(job: Measure | TimeFunctions, forks: Forks, conduct: Conduct) -> int:
    """Run conductors until the run has ended; how many processes were left running."""

    def become(first: int, pipes: Pipes[Progress]) -> NoReturn:
        def serve() -> None:
            conduct(range(first, first + each), pipes)
            pipes.finish()

        work(serve)

    adopt_orphans()  # a conductor that is dismissed leaves the processes that it forked early
    # A conductor that is told to stop has its own end, which this process then tells.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    single = job.smoke or job.starts_matter or job.time_s < _SHORT_S
    if not single:
        gc.disable()  # which makes an import a tenth shorter
        for name in _BEFORE_TORCH:
            with suppress(ImportError):
                import_module(name)
    cores = len(os.sched_getaffinity(0))
    at_once = 1 if single else max(_FEWEST_AT_ONCE, min(PROCESSES // _EACH, cores))
    progress = Progress()
    while not progress.ended:
        done = len(progress.processes)
        each = max(PROCESSES if single else _EACH, done // _SHARE)
        waiting = [Child(forks, done + place * each, Progress, become) for place in range(at_once)]
        died = next((child for child in waiting if not child.is_ready()), None)
        while waiting and not died and not progress.ended:
            child = waiting.pop(0)
            child.begin(progress)
            after = child.handover()
            if after is None or not child.has_finished():
                died = child
            else:
                progress = after
        for child in waiting:
            child.dismiss()
        if died:
            die_as(died.status)
    return progress.left_running


def _import_torch() -> None:
    with startup.timed(startup.IMPORTS):
        import torch  # noqa: F401
