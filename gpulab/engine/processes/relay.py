"""The worker's first process: it forks conductors, which import torch, and gives one after the
other its turn.

Where a conductor has torch's libraries is common to the processes that it forks, and short
operations of a CPU come out up to 10 % apart between two such places. So a run has several of them.
The first one's process loads and checks while the others import; from its rounds on nothing is
imported beside what is measured.
"""

from __future__ import annotations

import gc
import os
import random
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from math import ceil
from typing import NoReturn

from gpulab.core.events import Noticed, WorkerDone
from gpulab.core.finding import finding
from gpulab.core.jobs import Calibrate, Measure, TimeFunctions
from gpulab.core.statuses import Stage
from gpulab.engine.build.compiled import keep_code_of_the_run
from gpulab.engine.measure.handover import Progress
from gpulab.engine.measure.plan import PROCESSES
from gpulab.engine.processes import startup
from gpulab.engine.processes.channel import Channel, SampleBuffer, WorkerPosition
from gpulab.engine.processes.children import Child, Imports, Pipes
from gpulab.engine.processes.forking import Forks, adopt_orphans, exit_like
from gpulab.engine.processes.layout import move_libraries, seed_of
from gpulab.engine.processes.supervisor import Receive, name_variants, work
from gpulab.stats.statistics import FEWEST

_TURNS, _SHARE = 2, 8
"""Turns of a conductor, and the share of the processes before it that it has in each, where that is
more than those that a verdict needs: a long run imports ever less often.
"""
_PLACES, _ON_FEW_CORES = 4, 3
"""Conductors of a run: while the first one's process checks, one core can import the third, and no
fourth.
"""
_BEFORE_TORCH = (
    "numpy",
    "asyncio",
    "email",
    "inspect",
    "typing_extensions",
    "unittest.mock",
    "urllib.request",
)
"""What torch imports: once here, and none of it is where a step spends its time."""
_SHORT_S = 5.0
"""A run that is shorter has one conductor: it is not made to wait for more."""
_LIBRARIES = 5
"""Added to a seed, so that the places say nothing of the data."""
Conduct = Callable[[range, Pipes[Progress]], None]


def serve(
    channel: Channel,
    receive: Receive,
    buffer: SampleBuffer,
    position: WorkerPosition,
    forks: Forks,
    *,
    ready: bool = False,
) -> None:
    """Do a job; returns when the last event has left. `ready`: a conductor imports torch before
    there is a job.
    """

    def import_and_conduct(
        job: Measure | TimeFunctions | None, numbers: range, pipes: Pipes[Progress]
    ) -> None:
        move_libraries(
            random.Random(seed_of(job.seed if job else None, numbers.start) + _LIBRARIES)
        )
        _import_torch()
        from gpulab.engine.processes.job import conduct

        if job is None:
            job, numbers = pipes.receive_job()
            name_variants(job, position, buffer)
            keep_code_of_the_run(job)
        gc.enable()
        conduct(channel, job, buffer, position, forks, numbers, pipes)

    first = None
    if ready:
        first = _ready_conductor(forks, partial(import_and_conduct, None))
        # nobody is to take a worker without its conductor
        signal.signal(signal.SIGCHLD, lambda *_: os._exit(1))
    job = receive()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    keep_code_of_the_run(job)
    if isinstance(job, Calibrate):
        _import_torch()
        from gpulab.engine.processes.job import calibrate

        calibrate(channel, job, position)
    else:
        left_running = _relay(job, forks, partial(import_and_conduct, job), first)
        channel.adopt()
        if left_running:
            channel.emit(Noticed(finding=finding("processes_left_running", count=left_running)))
    position.move(Stage.END)
    channel.emit(WorkerDone(sent=channel.sent))
    channel.flush()


def _ready_conductor(forks: Forks, conduct: Conduct) -> Child[Progress]:
    """One that imports torch, and then waits for its job."""
    _import_before_torch()
    return Child(forks, 0, Progress, partial(_become_conductor, conduct, 1))


def _become_conductor(
    conduct: Conduct, processes: int, first: int, pipes: Pipes[Progress]
) -> NoReturn:
    def serve() -> None:
        conduct(range(first, first + processes), pipes)
        pipes.finish()

    work(serve)


def _import_before_torch() -> None:
    gc.disable()  # which makes an import a tenth shorter
    for name in _BEFORE_TORCH:
        with suppress(ImportError):
            import_module(name)


def _relay(
    job: Measure | TimeFunctions,
    forks: Forks,
    conduct: Conduct,
    first: Child[Progress] | None = None,
) -> int:
    """Run conductors until the run has ended; how many processes were left running. The `first` may
    be there.
    """
    adopt_orphans()  # a conductor that is dismissed leaves the processes that it forked early
    # A conductor that is told to stop has its own end, which this process then tells.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    single = job.smoke or job.starts_matter or job.time_s < _SHORT_S
    if not single:
        _import_before_torch()
    cores = len(os.sched_getaffinity(0))
    places = 1 if single else _PLACES if cores >= _PLACES else _ON_FEW_CORES
    progress, imports = Progress(), Imports()
    while not progress.ended:
        done = len(progress.processes)
        each = PROCESSES if single else max(ceil(FEWEST / places), done // _SHARE)
        conductors = _Conductors(forks, conduct, range(done, done + places * each, each), imports)
        if first is not None:
            conductors.add(first, job)
            first = None
        progress = conductors.run(progress, at_once=cores)
        imports = conductors.imports
    return progress.left_running


class _Conductors:
    """Conductors that have their turns one after the other; the first has its own while the others
    still import.
    """

    def __init__(self, forks: Forks, conduct: Conduct, firsts: range, imports: Imports) -> None:
        self._forks, self._conduct, self._firsts = forks, conduct, firsts
        self.imports = imports
        """What all of them are to have."""
        self._children: list[Child[Progress]] = []
        self._owed: list[int] = []
        """How often each has yet to say that it is ready."""

    def add(self, child: Child[Progress], job: Measure | TimeFunctions) -> None:
        """Have one that is there already be the first of them."""
        child.give_job(job, range(self._firsts.start, self._firsts.start + self._firsts.step))
        self._children.append(child)
        self._owed.append(1)

    def run(self, progress: Progress, at_once: int) -> Progress:
        """Give each its turns, unless the run ends before; `at_once` import at the same time until
        one has begun.
        """
        places = len(self._firsts)
        self._start(min(at_once, places))
        for place in [*range(places)] * _TURNS:
            self._start(place + 1)
            self._wait(place)
            child = self._children[place]
            child.begin(progress)
            after = child.handover(partial(self._spread, place))
            if after is None:
                self._exit_like(child)
            progress = after
            if progress.ended:
                if not child.has_finished():
                    self._exit_like(child)
                break
        for child in self._children:
            child.dismiss()
        return progress

    def _start(self, count: int) -> None:
        """Have so many of them, at least, import torch."""
        while len(self._children) < count:
            first = self._firsts[len(self._children)]
            become = partial(_become_conductor, self._conduct, self._firsts.step)
            self._children.append(Child(self._forks, first, Progress, become))
            self._owed.append(1)
            self._have(len(self._children) - 1)

    def _spread(self, begun: int, imports: Imports) -> None:
        """Have all others import what the first process did; before its rounds they have to be done
        with it.
        """
        self.imports = imports
        known = len(self._children)
        self._start(len(self._firsts))
        others = [place for place in range(len(self._children)) if place != begun]
        for place in others:
            if place < known:
                self._have(place)
        if imports.rounds_next:
            for place in others:
                self._wait(place)

    def _have(self, place: int) -> None:
        self._children[place].import_too(self.imports)
        self._owed[place] += 1

    def _wait(self, place: int) -> None:
        """Until one is ready for its turn."""
        child = self._children[place]
        while self._owed[place]:
            self._owed[place] -= 1
            if not child.is_ready():
                self._exit_like(child)

    def _exit_like(self, child: Child[Progress]) -> NoReturn:
        for other in self._children:
            other.dismiss()
        exit_like(child.status)


def _import_torch() -> None:
    with startup.timed(startup.IMPORTS):
        import torch  # noqa: F401
