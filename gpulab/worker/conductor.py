"""The process that forks the measuring ones: it imports torch once, runs no code of a scenario, and says when to stop.

Each measuring process has a device context, an address space, a moment and entropy of its own. What lies between two
of them is the error that an interval has to cover, and that no number of rounds in one process shows.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import NoReturn

from gpulab.analysis.comparison import NARROW, are_narrow, is_narrow_time, is_settled, keys_of, pairs_of
from gpulab.analysis.series import Epoch, EpochSeries, Key
from gpulab.analysis.statistics import FEWEST, Interval
from gpulab.protocol.events import Noticed
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.jobs import Measure, TimeFunctions
from gpulab.protocol.statuses import StopReason
from gpulab.scenario import CONTROL
from gpulab.worker.handover import Handover
from gpulab.worker.process.children import Child, Pipes
from gpulab.worker.process.forking import Forks
from gpulab.worker.process.orphans import adopt_orphans, kill_orphans
from gpulab.worker.process.reporting import Reporter
from gpulab.worker.timing.plan import PROCESSES

_PATIENCE = 1.3
"""Times the time that was asked for, where it takes that long to have as many processes as planned."""

Ask = Callable[[Handover], StopReason | None]
"""Hands over, and waits for the word whether this was the last process, and why."""
Begin = Callable[[], Handover | None]
"""Waits for this process's turn; what the one before handed over."""
Process = Callable[[int, Begin, Ask], None]
"""Measures in a forked process: its number, its beginning, and how to hand over. Before its turn it says nothing."""


class Conductor:
    """Runs one measuring process after the other until the run is to stop."""

    def __init__(
        self,
        job: Measure | TimeFunctions,
        forks: Forks,
        reporter: Reporter,
        process: Process,
        profile: Callable[[Sequence[str]], None],
    ) -> None:
        self._job, self._forks, self._reporter = job, forks, reporter
        self._position = reporter.position
        self._process, self._profile = process, profile
        self._series = EpochSeries(keys_of(job))
        self._waiting: list[Child] = []
        """Processes that were forked and had no turn yet."""
        self._started = self._processes = 0
        """Processes that were forked, and those that have handed over."""
        self.left_running = 0
        """Processes that a measuring one left; of the one that left most."""
        self._elapsed_s = 0.0
        """Of all processes but what the first one takes to prepare."""

    def serve(self) -> None:
        """Returns when the last process has done everything; where one dies, this one dies alike."""
        adopt_orphans()
        # A process that is told to stop has its own end, which this one then tells.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        gc.collect()
        gc.freeze()  # what is shared with the children is not written to by their collector
        handover: Handover | None = None
        self._start()
        if self._starts_early:
            for _ in range(1, PROCESSES):
                self._start()
        while True:
            handover, last = self._run(handover)
            if last:
                break
            self._import(handover.modules)
        for child in self._waiting:
            child.dismiss()
        if self._job.profile is not None:
            measured = {candidate.variant for candidate in handover.candidates}
            self._record([info.name for info in self._job.subject.variants if info.name in measured])

    def _import(self, modules: Sequence[str]) -> None:
        """Import what each process would have to; those that wait for their turns were forked without it."""
        missing = [name for name in modules if name not in sys.modules]
        if not missing:
            return
        early = len(self._waiting)
        for child in self._waiting:
            child.dismiss()
        self._waiting, self._started = [], self._started - early
        for name in missing:
            with suppress(Exception):
                importlib.import_module(name)
        for _ in range(early):
            self._start()

    @property
    def _starts_early(self) -> bool:
        """Whether processes that wait for their turns may have a context on the device meanwhile."""
        job = self._job
        alone = isinstance(job, Measure) and (job.exclusive or job.increasing_memory)
        return job.device != "cpu" and not (alone or job.smoke)

    def _start(self) -> None:
        """Fork the next process, which waits for its turn."""
        sys.stdout.flush()
        self._reporter.channel.flush()
        self._waiting.append(Child(self._forks, self._started, self._become_process))
        self._started += 1

    def _become_process(self, number: int, pipes: Pipes) -> NoReturn:
        def begin() -> Handover | None:
            before = pipes.begin()
            self._position.adopt()
            self._reporter.channel.adopt()
            return before

        def serve() -> None:
            self._process(number, begin, pipes.ask)
            pipes.finish()

        _become(serve, silent=number > 0)

    def _run(self, before: Handover | None) -> tuple[Handover, bool]:
        """The next process has its turn. (what it handed over, whether it was the last)."""
        if not self._waiting:
            self._start()
        child = self._waiting.pop(0)
        started = monotonic()
        child.begin(before)
        handover = child.handover()
        if handover is None:
            _die_as(child.status)
        reason = self._judge(handover, monotonic() - started)
        child.answer(reason)
        if not child.has_finished():
            _die_as(child.status)
        self.left_running = max(self.left_running, kill_orphans({other.pid for other in self._waiting}))
        return handover, reason is not None or not handover.candidates

    def _record(self, names: list[str]) -> None:
        """Profile, in a process that nothing is measured in; where it dies, the variants after that in another."""
        channel = self._reporter.channel
        while names:
            channel.adopt()
            channel.flush()
            pid = self._forks.fork()
            if pid == 0:
                self._position.adopt()
                _become(partial(self._profile, names), silent=True)
            status = os.waitpid(pid, 0)[1]
            kill_orphans()
            if status == 0:
                return
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGTERM:  # the run is being stopped
                _die_as(status)
            variant = self._position.variant
            channel.adopt()
            channel.emit(Noticed(finding=_profiling_ended(variant, status)))
            names = names[names.index(variant) + 1 :] if variant in names else []

    def _judge(self, handover: Handover, process_s: float) -> StopReason | None:
        """Why measuring ends with this process; None where it goes on."""
        first = self._processes == 0
        self._elapsed_s += handover.start_s + handover.measured_s if first else process_s
        values = dict(handover.values)
        for epoch in range(max(map(len, values.values()), default=0)):
            present = {key: epochs[epoch] for key, epochs in values.items() if epoch < len(epochs)}
            self._series.add(_Values(present, self._processes))
        self._processes += 1
        if not handover.candidates or handover.baseline_lost:
            return StopReason.FAILED
        job = self._job
        if job.smoke:
            return StopReason.EPOCHS
        if self._processes < FEWEST:
            return None
        names = {candidate.name for candidate in handover.candidates}
        if job.stop_early and self._is_narrow(names):
            return StopReason.WIDTH
        if job.required_speedup is not None and self._is_settled(names, job.required_speedup):
            return StopReason.SETTLED
        patience = 1.0 if self._processes >= PROCESSES else _PATIENCE
        return StopReason.TIME if self._elapsed_s >= patience * job.time_s else None

    def _is_narrow(self, names: set[str]) -> bool:
        job = self._job
        if isinstance(job, TimeFunctions):  # their time is all there is to say of them
            times = (self._interval((name,)) for name in names)
            if not all(is_narrow_time(time, job.width or NARROW) for time in times):
                return False
        return are_narrow((self._interval(pair) for pair in pairs_of(job, names)), job.width)

    def _interval(self, key: Key) -> Interval | None:
        return self._series[key].interval()

    def _is_settled(self, names: set[str], required: float) -> bool:
        """Whether every comparison is known to reach what is required, or one is known not to."""
        if not isinstance(self._job, Measure):
            return False
        pairs = [pair for pair in pairs_of(self._job, names) if pair[0] != CONTROL]
        settled = [is_settled(self._series[pair].processes(), required) for pair in pairs]
        return bool(settled) and (False in settled or None not in settled)


class _Values(Epoch):
    """An epoch of which the values of each quantity are known, and not its blocks."""

    def __init__(self, values: dict[Key, list[float]], process: int) -> None:
        super().__init__((), (), process)
        self._values.update(values)

    def _computed(self, key: Key) -> list[float]:
        return []


def _become(serve: Callable[[], None], *, silent: bool) -> NoReturn:
    """Serve in a forked process, and end. `silent`: whatever the scenario prints was printed by the first."""
    from gpulab.worker.supervisor import work

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if silent:
        nothing = os.open(os.devnull, os.O_WRONLY)
        for fd in (1, 2):
            os.dup2(nothing, fd)
        os.close(nothing)
    work(serve)


def _die_as(status: int | None) -> NoReturn:
    """End as a measuring process ended: the supervisor, which sees this process alone, tells the session of it."""
    code = os.waitstatus_to_exitcode(status or 0)
    if code >= 0:
        os._exit(code)
    import faulthandler

    faulthandler.disable()  # the stack that counts has been written
    signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), -code)
    os._exit(128 - code)


def _profiling_ended(variant: str | None, status: int) -> Finding:
    cause = _cause(os.waitstatus_to_exitcode(status))
    return finding("profiling_ended", variant, cause=cause.code, **cause.values)


def _cause(code: int) -> Finding:
    if code >= 0:
        return finding("worker_exited", code=code)
    if -code == signal.SIGKILL:
        return finding("killed")
    name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
    return finding("crashed", signal=name, meaning=signal.strsignal(-code))
