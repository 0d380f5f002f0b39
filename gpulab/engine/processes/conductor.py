"""A process that has imported torch and forks measuring ones: it runs no code of a scenario, and
says when to stop.

Each measuring process has a device context, a stack and a heap, a moment and entropy of its own.
What lies between two of them is the error that an interval has to cover, and that no number of
rounds in one process shows.
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
from time import monotonic
from typing import NoReturn

from msgspec.structs import replace

from gpulab.core.events import Noticed
from gpulab.core.finding import Finding, finding
from gpulab.core.jobs import Measure, TimeFunctions
from gpulab.core.payloads import Choice
from gpulab.core.statuses import StopReason
from gpulab.engine.build.compiled import know_vector_instructions
from gpulab.engine.measure.handover import Handover, Progress
from gpulab.engine.measure.stop_rule import StopRule
from gpulab.engine.processes.children import Child, Imports, Pipes
from gpulab.engine.processes.device import may_stay
from gpulab.engine.processes.forking import Forks, adopt_orphans, exit_like, kill_orphans
from gpulab.engine.processes.reporting import Reporter

_ASK_NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""With it torch asks whether there is a GPU without opening it."""
Ask = Callable[[Handover], StopReason | None]
"""Hands over, and waits for the word whether this was the last process, and why."""
Begin = Callable[[], Handover | None]
"""Waits for this process's turn; what the one before handed over."""
Tell = Callable[[Imports], None]
"""Tells what was imported; returns once the others have it, where the rounds come next."""
Profile = Callable[[Sequence[str], Sequence[Choice], Callable[[], None]], None]
"""Profiles the variants named in a forked process, once what it is given has returned; until then
it prepares.
"""
Process = Callable[[int, Begin, Tell, Ask], None]
"""Measures in a forked process: its number, its beginning, and how to hand over. Before its turn it
says nothing.
"""


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
        profile: Profile,
        numbers: range,
    ) -> None:
        self._job, self._forks, self._reporter = job, forks, reporter
        self._position = reporter.position
        self._process, self._profile = process, profile
        self._stop_rule = StopRule(job)
        self._waiting: list[Child[Handover]] = []
        """Processes that were forked and had no turn yet."""
        self._staying: list[Child[Handover]] = []
        """Processes that have done everything: to let go of a device takes each a tenth of a
        second.
        """
        self._numbers, self._next = numbers, numbers.start
        """Of the processes of this turn; the one to be forked next."""
        self._left_running = 0
        self._preparing: tuple[int, int] | None = None
        """A process that will profile, and the descriptor that lets it begin."""

    def serve(self, pipes: Pipes[Progress]) -> None:
        """Wait for its turns, and hand the run over after each; where a process dies, this one dies
        alike.
        """
        adopt_orphans()
        # A process that is told to stop has its own end, which this one then tells.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _freeze()
        self._pipes = pipes
        pipes.ready()
        ended = False
        while not ended:
            progress = pipes.begin(self._import) or Progress()
            self._numbers = range(
                len(progress.processes), len(progress.processes) + len(self._numbers)
            )
            self._next = max(self._next, self._numbers.start)
            after = self._turn(progress)
            ended = after.ended
            if ended:
                kill_orphans()
            pipes.hand_over(after)

    def _turn(self, progress: Progress) -> Progress:
        """Run the processes of a turn; the run after it."""
        self._stop_rule = StopRule(self._job)
        handover: Handover | None = None
        for handover, process_s in progress.processes:
            self._stop_rule.add(handover, process_s)
        if self._starts_early and progress.processes and not self._waiting:  # of a later turn
            self._start_all()
            self._wait_until_open()
        done, last = list(progress.processes), False
        while not last and len(done) < self._numbers.stop:
            handover, process_s, last = self._run(handover)
            handover = replace(handover, time_alone=self._stop_rule.to_time_alone(handover))
            done.append((handover, process_s))
        self._dismiss_waiting()
        if last and self._job.profile is not None:
            self._record(self._names_to_profile(done[-1][0]), done[-1][0].choices)
        left_running = max(progress.left_running, self._left_running)
        return Progress(processes=done, left_running=left_running, ended=last)

    def _names_to_profile(self, last: Handover) -> list[str]:
        measured = {candidate.variant for candidate in last.candidates}
        if self._job.profile is not None and not self._job.profile.every:
            measured &= self._stop_rule.extremes()
        return [info.name for info in self._job.subject.variants if info.name in measured]

    def _tell(self, imports: Imports) -> None:
        """What the first process has imported: the others import it as this one does, and before
        its rounds begin.
        """
        self._pipes.tell_imports(imports)
        self._import(imports)
        self._pipes.wait_for_imports()

    def _import(self, imports: Imports) -> None:
        """Import what each process would have to; those that wait for their turns were forked
        without it.
        """
        missing = [name for name in imports.modules if name not in sys.modules]
        if missing:
            self._next -= len(self._waiting)
            self._dismiss_waiting()
            _import_all(missing)
        if imports.vector_instructions is not None:
            with suppress(Exception):  # then each process asks for itself
                know_vector_instructions(imports.vector_instructions)
        _freeze()
        if self._starts_early and imports.opened:
            self._start_all()
        if imports.rounds_next:  # no device is opened beside them
            self._wait_until_open()

    @property
    def _starts_early(self) -> bool:
        """Whether processes that wait for their turns may have a context on the device
        meanwhile.
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

    def _start_all(self) -> None:
        while self._next < self._numbers.stop:
            self._start()

    def _wait_until_open(self) -> None:
        for child in self._waiting:
            if not child.is_ready():
                self._exit_like(child)

    def _dismiss_waiting(self) -> None:
        for child in self._waiting:
            child.dismiss()
        self._waiting = []

    def _kill_orphans(self) -> None:
        spare = {other.pid for other in (*self._waiting, *self._staying)}
        spare |= {self._preparing[0]} if self._preparing else set()
        self._left_running = max(self._left_running, kill_orphans(spare))

    def _become_process(self, number: int, pipes: Pipes[Handover]) -> NoReturn:
        def begin() -> Handover | None:
            pipes.ready()
            before = pipes.begin()
            self._position.adopt()
            self._reporter.channel.adopt()
            return before

        def serve() -> None:
            self._process(number, begin, pipes.imported, pipes.ask)
            pipes.finish(stays=self._starts_early and may_stay())

        _become(serve, silent=number > 0)

    def _run(self, before: Handover | None) -> tuple[Handover, float, bool]:
        """The next process has its turn. (what it handed over, the seconds until then, whether it
        was the last).
        """
        started = monotonic()
        if not self._waiting:
            self._start()
        child = self._waiting.pop(0)
        child.begin(before)
        handover = child.handover(self._tell)
        if handover is None:
            self._exit_like(child)
        process_s = monotonic() - started
        reason = self._stop_rule.reason(handover, process_s)
        child.answer(reason)
        # What the last process does after its rounds leaves other cores free.
        if reason is not None and self._job.profile is not None and self._starts_early:
            self._preparing = self._fork_profile(self._names_to_profile(handover), handover.choices)
        if not child.has_finished():
            self._exit_like(child)
        if child.is_there:
            self._staying.append(child)
        self._kill_orphans()
        return handover, process_s, reason is not None or not handover.candidates

    def _exit_like(self, child: Child[Handover]) -> NoReturn:
        self._dismiss_waiting()
        exit_like(child.status)

    def _fork_profile(self, names: Sequence[str], choices: Sequence[Choice]) -> tuple[int, int]:
        """(a process that will profile, the descriptor of its pipe that lets it begin)."""
        begun, begin = os.pipe2(os.O_CLOEXEC)
        pid = self._forks.fork()
        if pid == 0:
            os.close(begin)
            _become(
                partial(self._profile, names, choices, lambda: _wait_for_line(begun)), silent=True
            )
        os.close(begun)
        return pid, begin

    def _record(self, names: list[str], choices: Sequence[Choice]) -> None:
        """Profile, in a process that nothing is measured in; where it dies, the variants after that
        in another.
        """
        channel = self._reporter.channel
        while names:
            channel.adopt()
            channel.flush()
            (pid, begin), self._preparing = (
                self._preparing or self._fork_profile(names, choices),
                None,
            )
            os.write(begin, b"\n")
            os.close(begin)
            status = os.waitpid(pid, 0)[1]
            kill_orphans()
            if status == 0:
                return
            # the run is being stopped
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGTERM:
                exit_like(status)
            variant = self._position.variant
            channel.adopt()
            channel.emit(Noticed(finding=_profiling_ended(variant, status)))
            names = names[names.index(variant) + 1 :] if variant in names else []


def _wait_for_line(fd: int) -> None:
    os.read(fd, 1)
    os.close(fd)


def _import_all(names: Sequence[str]) -> None:
    """Without a word to the driver of a GPU: a process that is forked after that could not use
    it.
    """
    # of JAX, before it has a thread
    warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called")
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
    """Serve in a forked process, and end. `silent`: whatever the scenario prints was printed by the
    first.
    """
    from gpulab.engine.processes.supervisor import work

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
