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
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from math import log
from time import monotonic
from typing import NoReturn

from msgspec.structs import replace

from gpulab.protocol.events import Noticed
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.jobs import Measure, TimeFunctions
from gpulab.protocol.statuses import StopReason
from gpulab.protocol.tuning import Choice
from gpulab.worker.building.compiled import know_vector_instructions
from gpulab.worker.handover import Handover, Progress
from gpulab.worker.process.children import Child, Imports, Pipes
from gpulab.worker.process.forking import Forks, die_as
from gpulab.worker.process.orphans import adopt_orphans, kill_orphans
from gpulab.worker.process.reporting import Reporter
from gpulab.worker.stop_rule import StopRule

_ALONE = 1 << 16
"""Added to the numbers of processes with one variant, which have seeds of their own."""
_ASK_NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""With it torch asks whether there is a GPU without opening it."""
Ask = Callable[[Handover], StopReason | None]
"""Hands over, and waits for the word whether this was the last process, and why."""
Begin = Callable[[], Handover | None]
"""Waits for this process's turn; what the one before handed over."""
Tell = Callable[[Imports], None]
"""Tells what was imported; returns once the others have it, where the rounds come next."""
Process = Callable[[int, Begin, Tell, Ask], None]
"""Measures in a forked process: its number, its beginning, and how to hand over. Before its turn it says nothing."""


class Conductor:
    """Runs as many measuring processes a turn, one after the other, unless the run is to stop.

    `numbers` are those of its first turn.
    """

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
        self._waiting_alone: list[Child[Handover]] = []
        """The same, for one variant each."""
        self._numbers, self._next = numbers, numbers.start
        self._alone_numbers = count(numbers.start)
        """Of the processes of this turn; the one to be forked next."""
        self._left_running = 0
        self._alone: list[tuple[str, float]] = []

    def serve(self, pipes: Pipes[Progress]) -> None:
        """Wait for its turns, and hand the run over after each; where a process dies, this one dies alike."""
        adopt_orphans()
        # A process that is told to stop has its own end, which this one then tells.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _freeze()
        self._pipes = pipes
        pipes.ready()
        ended = False
        while not ended:
            progress = pipes.begin(self._import) or Progress()
            self._numbers = range(len(progress.processes), len(progress.processes) + len(self._numbers))
            self._next = max(self._next, self._numbers.start)
            after = self._turn(progress)
            ended = after.ended
            pipes.hand_over(after)

    def _turn(self, progress: Progress) -> Progress:
        """Run the processes of a turn; the run after it."""
        self._stop_rule = StopRule(self._job)
        handover: Handover | None = None
        for handover, process_s in progress.processes:
            self._stop_rule.add(handover, process_s)
        done, last = list(progress.processes), False
        self._alone = list(progress.alone)
        while not last and len(done) < self._numbers.stop:
            handover, process_s, last = self._run(handover)
            if self._job.alone and not last:
                for variant in self._stop_rule.to_run_alone(handover, self._alone):
                    self._run_alone(variant, handover, len(done))
            done.append((handover, process_s))
        self._dismiss_waiting()
        if last and self._job.profile is not None:
            measured = {candidate.variant for candidate in done[-1][0].candidates}
            if not self._job.profile.every:
                measured &= self._stop_rule.extremes()
            names = [info.name for info in self._job.subject.variants if info.name in measured]
            self._record(names, done[-1][0].choices)
        left_running = max(progress.left_running, self._left_running)
        return Progress(processes=done, alone=self._alone, left_running=left_running, ended=last)

    def _tell(self, imports: Imports) -> None:
        """What the first process has imported: the others import it as this one does, and before its rounds begin."""
        self._pipes.tell_imports(imports)
        self._import(imports)
        self._pipes.wait_for_imports()

    def _import(self, imports: Imports) -> None:
        """Import what each process would have to; those that wait for their turns were forked without it."""
        missing = [name for name in imports.modules if name not in sys.modules]
        if missing:
            self._next -= len(self._waiting)
            self._dismiss_waiting()
            _import_all(missing)
        if imports.vector_instructions is not None:
            with suppress(Exception):  # then each process asks for itself
                know_vector_instructions(imports.vector_instructions)
        _freeze()
        if self._starts_early:
            while self._next < self._numbers.stop:
                self._start()
                self._waiting_alone += [self._fork_alone()] if self._job.alone else []

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
        self._waiting.append(Child(self._forks, self._next, Handover, self._become_process))
        self._next += 1

    def _fork_alone(self) -> Child[Handover]:
        sys.stdout.flush()
        self._reporter.channel.flush()
        return Child(self._forks, _ALONE + next(self._alone_numbers), Handover, self._become_process)

    def _dismiss_waiting(self) -> None:
        for child in (*self._waiting, *self._waiting_alone):
            child.dismiss()
        self._waiting, self._waiting_alone = [], []

    def _run_alone(self, variant: str, beside: Handover, process: int) -> None:
        """Time one variant in a process where no other is built. One that dies says no more than that it has."""
        child = self._waiting_alone.pop(0) if self._waiting_alone else self._fork_alone()
        child.begin(replace(beside, alone=variant, process=process))
        after = child.handover(self._tell)
        if after is not None and after.alone_s and beside.alone_s:
            self._alone.append((variant, log(after.alone_s / beside.alone_s)))
        child.answer(None)
        child.has_finished()
        self._kill_orphans()

    def _kill_orphans(self) -> None:
        spare = {other.pid for other in (*self._waiting, *self._waiting_alone)}
        self._left_running = max(self._left_running, kill_orphans(spare))

    def _become_process(self, number: int, pipes: Pipes[Handover]) -> NoReturn:
        def begin() -> Handover | None:
            before = pipes.begin()
            self._position.adopt()
            self._reporter.channel.adopt()
            return before

        def serve() -> None:
            self._process(number, begin, pipes.imported, pipes.ask)
            pipes.finish()

        _become(serve, silent=number > 0)

    def _run(self, before: Handover | None) -> tuple[Handover, float, bool]:
        """The next process has its turn. (what it handed over, the seconds until then, whether it was the last)."""
        started = monotonic()
        if not self._waiting:
            self._start()
        child = self._waiting.pop(0)
        child.begin(before)
        handover = child.handover(self._tell)
        if handover is None:
            self._die_as(child)
        process_s = monotonic() - started
        reason = self._stop_rule.reason(handover, process_s)
        child.answer(reason)
        if not child.has_finished():
            self._die_as(child)
        self._kill_orphans()
        return handover, process_s, reason is not None or not handover.candidates

    def _die_as(self, child: Child[Handover]) -> NoReturn:
        self._dismiss_waiting()
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


def _import_all(names: Sequence[str]) -> None:
    """Without a word to the driver of a GPU: a process that is forked after that could not use it."""
    warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called")  # of JAX, before it has a thread
    before = os.environ.get(_ASK_NVML)
    os.environ[_ASK_NVML] = "1"
    for name in names:
        with suppress(Exception):
            importlib.import_module(name)
    if before is None:
        del os.environ[_ASK_NVML]
    else:
        os.environ[_ASK_NVML] = before


def _freeze() -> None:
    """What is shared with the children is not written to by their collector."""
    gc.collect()
    gc.freeze()


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
