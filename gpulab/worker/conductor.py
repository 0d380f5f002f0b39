"""A process that has imported torch and forks measuring ones: it runs no code of a scenario, and says when to stop.

Each measuring process has a device context, a stack and a heap, a moment and entropy of its own. What lies between two
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

from gpulab.protocol.events import Noticed
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.jobs import Measure, TimeFunctions
from gpulab.protocol.statuses import StopReason
from gpulab.protocol.tuning import Choice
from gpulab.worker.building.compiled import know_vector_instructions
from gpulab.worker.handover import Handover, Progress
from gpulab.worker.process.children import Child, Pipes
from gpulab.worker.process.forking import Forks, die_as
from gpulab.worker.process.orphans import adopt_orphans, kill_orphans
from gpulab.worker.process.reporting import Reporter
from gpulab.worker.stop_rule import StopRule

Ask = Callable[[Handover], StopReason | None]
"""Hands over, and waits for the word whether this was the last process, and why."""
Begin = Callable[[], Handover | None]
"""Waits for this process's turn; what the one before handed over."""
Process = Callable[[int, Begin, Ask], None]
"""Measures in a forked process: its number, its beginning, and how to hand over. Before its turn it says nothing."""


class Conductor:
    """Runs the measuring processes of these numbers, one after the other, unless the run is to stop."""

    def __init__(
        self,
        job: Measure | TimeFunctions,
        forks: Forks,
        reporter: Reporter,
        process: Process,
        profile: Callable[[Sequence[str], Sequence[Choice]], None],
        numbers: range,
    ) -> None:
        self._job, self._forks, self._reporter = job, forks, reporter
        self._position = reporter.position
        self._process, self._profile = process, profile
        self._stop_rule = StopRule(job)
        self._waiting: list[Child[Handover]] = []
        """Processes that were forked and had no turn yet."""
        self._numbers, self._forked = numbers, 0
        """Of the processes, and how many of them were forked."""
        self._left_running = 0

    def serve(self, pipes: Pipes[Progress]) -> None:
        """Wait for its turn, and hand the run over after it; where a process dies, this one dies alike."""
        adopt_orphans()
        # A process that is told to stop has its own end, which this one then tells.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        gc.collect()
        gc.freeze()  # what is shared with the children is not written to by their collector
        if self._starts_early:
            for _ in self._numbers:
                self._start()
        pipes.ready()
        progress = pipes.begin() or Progress()
        handover: Handover | None = None
        for handover, process_s in progress.processes:
            self._stop_rule.add(handover, process_s)
        done, last = list(progress.processes), False
        while not last and len(done) < self._numbers.stop:
            handover, process_s, last = self._run(handover)
            done.append((handover, process_s))
        for child in self._waiting:
            child.dismiss()
        if last and self._job.profile is not None:
            measured = {candidate.variant for candidate in done[-1][0].candidates}
            names = [info.name for info in self._job.subject.variants if info.name in measured]
            self._record(names, done[-1][0].choices)
        left_running = max(progress.left_running, self._left_running)
        pipes.hand_over(Progress(processes=done, left_running=left_running, ended=last))

    def _import(self, before: Handover) -> None:
        """Import what each process would have to; those that wait for their turns were forked without it."""
        missing = [name for name in before.modules if name not in sys.modules]
        if not missing:
            return
        early = len(self._waiting)
        for child in self._waiting:
            child.dismiss()
        self._waiting, self._forked = [], self._forked - early
        for name in missing:
            with suppress(Exception):
                importlib.import_module(name)
        if before.vector_instructions is not None:
            with suppress(Exception):  # then each process asks for itself
                know_vector_instructions(before.vector_instructions)
        for _ in range(early):
            self._start()

    @property
    def _starts_early(self) -> bool:
        """Whether processes that wait for their turns may have a context on the device meanwhile.

        While others open the device, it takes the first one several times as long.
        """
        job = self._job
        alone = isinstance(job, Measure) and (job.exclusive or job.increasing_memory)
        return job.device != "cpu" and not (alone or job.smoke or job.starts_matter)

    def _start(self) -> None:
        """Fork the next process, which waits for its turn."""
        sys.stdout.flush()
        self._reporter.channel.flush()
        self._waiting.append(Child(self._forks, self._numbers[self._forked], Handover, self._become_process))
        self._forked += 1

    def _become_process(self, number: int, pipes: Pipes[Handover]) -> NoReturn:
        def begin() -> Handover | None:
            before = pipes.begin()
            self._position.adopt()
            self._reporter.channel.adopt()
            return before

        def serve() -> None:
            self._process(number, begin, pipes.ask)
            pipes.finish()

        _become(serve, silent=number > 0)

    def _run(self, before: Handover | None) -> tuple[Handover, float, bool]:
        """The next process has its turn. (what it handed over, the seconds until then, whether it was the last)."""
        started = monotonic()
        if before is not None:
            self._import(before)
        if not self._waiting:
            self._start()
        child = self._waiting.pop(0)
        child.begin(before)
        handover = child.handover()
        if handover is None:
            self._die_as(child)
        process_s = monotonic() - started
        reason = self._stop_rule.reason(handover, process_s)
        child.answer(reason)
        if not child.has_finished():
            self._die_as(child)
        self._left_running = max(self._left_running, kill_orphans({other.pid for other in self._waiting}))
        return handover, process_s, reason is not None or not handover.candidates

    def _die_as(self, child: Child[Handover]) -> NoReturn:
        for other in self._waiting:
            other.dismiss()
        die_as(child.status)

    def _record(self, names: list[str], choices: Sequence[Choice]) -> None:
        """Profile, in a process that nothing is measured in; where it dies, the variants after that in another."""
        channel = self._reporter.channel
        while names:
            channel.adopt()
            channel.flush()
            pid = self._forks.fork()
            if pid == 0:
                self._position.adopt()
                _become(partial(self._profile, names, choices), silent=True)
            status = os.waitpid(pid, 0)[1]
            kill_orphans()
            if status == 0:
                return
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGTERM:  # the run is being stopped
                die_as(status)
            variant = self._position.variant
            channel.adopt()
            channel.emit(Noticed(finding=_profiling_ended(variant, status)))
            names = names[names.index(variant) + 1 :] if variant in names else []


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
