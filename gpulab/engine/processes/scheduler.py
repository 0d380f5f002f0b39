"""The worker's first process: forks the fork servers of a run, which import torch, and schedules
their turns.

torch's libraries lie at one address in all processes of a fork server, and short operations of a
CPU differ by up to 10 % between two such addresses: a run has several fork servers. The first one's
process loads and checks while the others import torch; during its rounds nothing is imported.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from math import ceil
from typing import NoReturn

import msgspec

from gpulab.core.events import FindingMade, Looked, WorkerDone
from gpulab.core.failures import processes_left_running
from gpulab.core.jobs import Calibrate, Look, Measure, TimeFunctions
from gpulab.core.statuses import Stage
from gpulab.engine.build.compiled import keep_code_of_the_run
from gpulab.engine.measure.plan import PROCESSES
from gpulab.engine.measure.process_result import RunResults
from gpulab.engine.processes import startup
from gpulab.engine.processes.channel import Channel
from gpulab.engine.processes.child import Child, ParentPipe, Preload, kill_all
from gpulab.engine.processes.layout import move_libraries, seed_of
from gpulab.engine.processes.supervisor import Receive
from gpulab.features import present
from gpulab.proc.fork import become_subreaper
from gpulab.proc.tree import ForkGuard, exit_like
from gpulab.stats.statistics import FEWEST

_IMPORTED_BY_TORCH = (
    "numpy",
    "asyncio",
    "email",
    "inspect",
    "typing_extensions",
    "unittest.mock",
    "urllib.request",
)
"""Imported once, before the fork: no step spends its time in them."""
ServeForks = Callable[[range, ParentPipe], None]
"""Serves as a fork server, whose processes have these numbers."""


def serve(channel: Channel, receive: Receive, forks: ForkGuard, *, ready: bool = False) -> None:
    """Do a job; returns when the last event has left. `ready`: a fork server imports torch before
    there is a job.
    """

    def serve_forks(job: Measure | TimeFunctions | None, numbers: range, pipe: ParentPipe) -> None:
        pinned = job.seed if job else None
        # so that the addresses say nothing of the data
        move_libraries(random.Random(seed_of(pinned, numbers.start) + 5))
        _import_torch()
        from gpulab.engine.processes.fork_server import ForkServer, import_early

        if job is None:
            job, numbers = pipe.receive()
            channel.name_variants(job)
            keep_code_of_the_run(job)
        import_early(job)
        gc.enable()
        ForkServer(channel, job, forks, numbers, pipe).serve()

    first = None
    if ready:
        _import_before_torch()
        first = Child(forks, partial(_serve_child, partial(serve_forks, None), range(1)))
        # nobody is to take a worker whose fork server has died
        signal.signal(signal.SIGCHLD, lambda *_: os._exit(1))
    job = receive()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    keep_code_of_the_run(job)
    if isinstance(job, Calibrate):
        _import_torch()
        from gpulab.engine.processes.fork_server import calibrate

        calibrate(channel, job)
    elif isinstance(job, Look):
        channel.emit(Looked(answer=msgspec.Raw(_answer(job))))
    else:
        results = _run(job, forks, partial(serve_forks, job), first)
        channel.take_turn()
        if results.left_running:
            left_running = processes_left_running(count=results.left_running)
            channel.emit(FindingMade(finding=left_running))
        counters = present("counters.worker") if job.counters else None
        if counters is not None and results.before is not None:
            counters.count(job, results.before, channel)
    channel.position.move(Stage.END)
    channel.emit(WorkerDone(sent=channel.sent))
    channel.flush()


def _run(
    job: Measure | TimeFunctions, forks: ForkGuard, serve_forks: ServeForks, first: Child | None
) -> RunResults:
    """Run fork servers until the run has ended, beginning with `first` where it is there."""
    become_subreaper()  # a fork server that is killed leaves the processes that it forked early
    # A fork server that is told to stop ends by itself, and this process ends like it.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # a shorter run does not wait for more than one fork server
    single = job.smoke or job.starts_matter or job.time_s < 5.0
    if not single:
        _import_before_torch()
    cores = len(os.sched_getaffinity(0))
    # while the first one's process checks, one core has time to import torch for the third, and not
    # for a fourth
    servers = 1 if single else min(4, max(3, cores))
    results = RunResults()
    preload = Preload()
    while not results.ended:
        done = results.done
        # an eighth of the processes before it, where that is more than a verdict needs: a long run
        # imports ever less often
        each = PROCESSES if single else max(ceil(FEWEST / servers), done // 8)
        numbers = range(done, done + servers * each, each)
        round_of_servers = _ForkServers(forks, serve_forks, numbers, preload)
        if first is not None:
            round_of_servers.add(first, job)
            first = None
        results = round_of_servers.run(results, at_once=cores)
        preload = round_of_servers.preload
    return results


def _serve_child(serve_forks: ServeForks, numbers: range, pipe: ParentPipe) -> None:
    serve_forks(numbers, pipe)
    pipe.finish()


def _import_before_torch() -> None:
    gc.disable()  # an import is 10 % faster without it
    for name in _IMPORTED_BY_TORCH:
        with suppress(ImportError):
            import_module(name)


def _import_torch() -> None:
    with startup.timed(startup.IMPORTS):
        import torch  # noqa: F401

        if "numpy" in sys.modules:
            # NumPy imports it where it is first used: each process would, to seed it.
            import_module("numpy.random")


def _answer(job: Look) -> bytes:
    try:
        return msgspec.json.encode(import_module(job.module).look(bytes(job.request)))
    except (Exception, SystemExit) as error:
        from gpulab.engine.processes.failure import first_line

        return msgspec.json.encode({"problem": f"{type(error).__name__}: {first_line(error)}"})


@dataclass
class _ForkServers:
    """Fork servers that take turns. The first has its turn while the others still import torch."""

    _forks: ForkGuard
    _serve_forks: ServeForks
    _numbers: range
    """Of the first process of each."""
    preload: Preload
    """What all of them are to import."""
    _children: list[Child] = field(default_factory=list)

    def add(self, child: Child, job: Measure | TimeFunctions) -> None:
        """Use a fork server that was ready before there was a job as the first."""
        start = self._numbers.start
        child.send((job, range(start, start + self._numbers.step)))
        self._children.append(child)

    def run(self, results: RunResults, at_once: int) -> RunResults:
        """Give each its turns, unless the run ends before. `at_once`: how many import at the same
        time until one has begun.
        """
        servers = len(self._numbers)
        self._start(min(at_once, servers))
        # each fork server has two turns
        for place in [*range(servers)] * 2:
            self._start(place + 1)
            child = self._children[place]
            child.send(results)
            after = child.result(partial(self._preload_others, place))
            if after is None:
                self._exit_like(child)
            results = after
            if results.ended:
                if not child.has_finished():
                    self._exit_like(child)
                break
        kill_all(self._children)
        return results

    def _start(self, count: int) -> None:
        """Have at least `count` of them import torch."""
        while len(self._children) < count:
            first = self._numbers[len(self._children)]
            numbers = range(first, first + self._numbers.step)
            child = Child(self._forks, partial(_serve_child, self._serve_forks, numbers))
            child.send(self.preload)
            self._children.append(child)

    def _preload_others(self, begun: int, preload: Preload) -> None:
        """Have all others import what the first process did, and finish that before its rounds."""
        self.preload = preload
        known = self._children.copy()
        self._start(len(self._numbers))
        for child in known:
            if child is not known[begun]:
                child.send(preload)
        if preload.rounds_next:
            for child in self._children:
                if child is not known[begun] and not child.wait_until_ready():
                    self._exit_like(child)

    def _exit_like(self, child: Child) -> NoReturn:
        kill_all(self._children)
        exit_like(child.status)
