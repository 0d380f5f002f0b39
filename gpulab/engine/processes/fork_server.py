"""A fork server: a process that has imported torch, forks the measuring processes of its turns one
after the other, and decides when the run stops. It runs no code of a scenario.

Each measuring process has a device context, a stack, a heap, a moment and a seed of its own. The
difference between two of them is the error that an interval has to cover, and that no number of
rounds in one process shows.
"""

from __future__ import annotations

import ast
import gc
import importlib
import os
import random
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import NoReturn

from msgspec.structs import replace

from gpulab.core.events import FindingMade, WorkerReady
from gpulab.core.failures import ended_by, worker_exited
from gpulab.core.findings import Finding
from gpulab.core.jobs import Calibrate, Measure, TimeFunctions
from gpulab.core.payloads import Choice
from gpulab.core.statuses import Stage
from gpulab.core.text import BYTE_ORDER_MARK
from gpulab.engine.build import compiled
from gpulab.engine.measure import runner
from gpulab.engine.measure.context import Process
from gpulab.engine.measure.process_result import ProcessResult, RunResults
from gpulab.engine.measure.stop_rule import StopRule
from gpulab.engine.processes.channel import Channel
from gpulab.engine.processes.child import Child, ParentPipe, Preload, Turn, kill_all
from gpulab.engine.processes.device import environment, may_stay, open_device, waiter
from gpulab.engine.processes.failure import first_line
from gpulab.engine.processes.layout import in_own_layout, seed_of
from gpulab.engine.processes.reporting import Reporter
from gpulab.engine.ranks.group import threads_of_rank
from gpulab.engine.ranks.ranks import start as start_ranks
from gpulab.features.goodput.findings import profiling_ended, profiling_failed
from gpulab.features.goodput.worker import Profiler
from gpulab.features.roofline.calibration import Calibration
from gpulab.proc.fork import become_subreaper
from gpulab.proc.tree import ForkGuard, exit_like, kill_orphans


def calibrate(channel: Channel, job: Calibrate) -> None:
    """Measure every ceiling of the device."""
    reporter = Reporter(channel, job, channel.position)

    ranks = start_ranks(job, job.seed or 0)

    def measure() -> None:
        reporter.stage(Stage.LOAD)
        device, info = open_device(job.device, threads_of_rank(job.threads, job.ranks))
        channel.emit(WorkerReady(pid=os.getpid(), device=info, environment=environment()))
        reporter.wait = waiter(device)
        reporter.stage(Stage.CEILINGS)
        calibration = Calibration(reporter, device, info, reporter.wait)
        if ranks is None:
            calibration.everything()
        else:
            ranks.join(device, reporter)
            calibration.links(ranks, brief=False)

    _guarded(reporter, measure)
    if ranks is not None:
        ranks.close()


def _guarded(reporter: Reporter, run: Callable[[], None]) -> None:
    """Run code of a scenario: whatever it does ends as an event."""
    reporter.channel.take_ownership()
    try:
        run()
    except BaseException as error:  # from where no code of a scenario was expected to raise
        stage = reporter.position.stage
        if stage == Stage.PROFILE:
            reporter.found(profiling_failed(message=first_line(error)))
        else:
            reporter.failed(None, stage, error)
    compiled.end()
    reporter.channel.flush()


@dataclass
class ForkServer:
    """Runs the measuring processes of its turns, unless the run is to stop before."""

    _channel: Channel
    _job: Measure | TimeFunctions
    _forks: ForkGuard
    _numbers: range
    """Of the processes of this turn, at first of its first one."""
    _pipe: ParentPipe
    _waiting: list[Child] = field(default_factory=list)
    """Processes that were forked early and had no turn yet."""
    _staying: list[Child] = field(default_factory=list)
    """Processes that have done everything: each takes 0.1 s to let go of a GPU."""
    _left_running: int = 0
    _profiling: Child | None = None
    """A process that prepares to profile."""

    def __post_init__(self) -> None:
        self._reporter = Reporter(self._channel, self._job, self._channel.position)
        self._stop_rule = StopRule(self._job)
        self._first = self._next = self._numbers.start
        """The first of its processes in the whole run, which tells its own from those of others;
        and the one to be forked next.
        """

    def serve(self) -> None:
        """Wait for its turns, and send the results after each; returns when all events have left.
        Where a process dies, this one dies like it.
        """
        become_subreaper()
        # A process that is told to stop ends by itself, and this one ends like it.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        # the collector of a child would write to the memory that it shares with this process
        gc.freeze()
        ended = False
        while not ended:
            results = self._pipe.begin(self._preload) or RunResults()
            done = results.done
            self._numbers = range(done, done + len(self._numbers))
            self._next = max(self._next, done)
            after = self._turn(results)
            ended = after.ended
            if ended:
                kill_orphans()
            self._pipe.send("result", after)
        self._channel.take_ownership()
        self._channel.flush()

    def _turn(self, results: RunResults) -> RunResults:
        """Run the processes of a turn; the results of the run after it."""
        self._stop_rule = results.rule or StopRule(self._job)
        before = results.before
        done = results.done
        if self._starts_early and done and not self._waiting:  # of a later turn
            self._start_all()
            self._wait_until_open()
        last = False
        profiled = results.profiled or self._job.profile is None
        while not last and done < self._numbers.stop:
            result, last = self._run_process(before)
            before = replace(result, time_alone=self._stop_rule.to_time_alone(result))
            done += 1
            # where nothing is compared, the bill of a step is the answer: it comes first
            if not profiled and (last or isinstance(self._job, TimeFunctions)):
                self._let_go_of_waiting()
                self._profile(self._names_to_profile(before), before.choices)
                profiled = True
                if not last:
                    self._reporter.stage(Stage.MEASURE)
        self._kill_waiting()
        return RunResults(
            done=done,
            before=before,
            rule=self._stop_rule,
            left_running=max(results.left_running, self._left_running),
            profiled=profiled,
            ended=last,
        )

    def _run_process(self, before: ProcessResult | None) -> tuple[ProcessResult, bool]:
        """Give the next process its turn: its result, and whether it was the last."""
        started = monotonic()
        if not self._waiting:
            self._start()
        child = self._waiting.pop(0)
        child.send(before)
        result = child.result(self._pass_on)
        if result is None:
            self._exit_like(child)
        reason = self._stop_rule.reason(result, monotonic() - started)
        child.send(reason)
        # What the last process does after its rounds leaves other cores free.
        if reason is not None and self._job.profile is not None and self._starts_early:
            names = self._names_to_profile(result)
            self._profiling = self._fork_profiling(names, result.choices)
        if not child.has_finished():
            self._exit_like(child)
        if child.status is None:
            self._staying.append(child)
        self._kill_orphans()
        return result, reason is not None or not result.candidates

    @property
    def _starts_early(self) -> bool:
        """Return whether processes that wait for their turns may open the device meanwhile."""
        job = self._job
        if job.device == "cpu" or job.smoke or job.starts_matter:
            return False
        return not (job.exclusive or job.increasing_memory or job.ranks > 1)

    def _start(self) -> None:
        sys.stdout.flush()
        self._channel.flush()
        self._waiting.append(Child(self._forks, partial(self._serve_process, self._next)))
        self._next += 1

    def _start_all(self) -> None:
        while self._next < self._numbers.stop:
            self._start()

    def _serve_process(self, number: int, pipe: ParentPipe) -> None:
        """In the forked process: measure."""
        if number:
            _be_silent()
        seed = seed_of(self._job.seed, number)
        turn, buffer = Turn(pipe, self._channel), self._channel.buffer
        process = Process(
            number=number, seed=seed, fork_server=self._first, buffer=buffer, turn=turn
        )

        def measure() -> None:
            runner.measure(self._job, self._reporter, process)

        # so that the layout says nothing of the process's order
        draw = random.Random(seed + 6)
        _guarded(self._reporter, lambda: in_own_layout(draw, measure))
        pipe.finish(stays=self._starts_early and may_stay())

    def _pass_on(self, preload: Preload) -> None:
        """Have all fork servers import what the first process did, this one too."""
        self._pipe.preload(preload, lambda: self._preload(preload))

    def _preload(self, preload: Preload) -> None:
        """Import what each process would have to. Those that wait for their turns were forked
        without it, and are forked anew.
        """
        missing = [name for name in preload.modules if name not in sys.modules]
        if missing:
            self._let_go_of_waiting()
            _import_all(missing)
        if preload.vector_instructions is not None:
            with suppress(Exception):  # then each process asks for itself
                compiled.know_vector_instructions(preload.vector_instructions)
        gc.freeze()
        if self._starts_early and preload.opened:
            self._start_all()
        if preload.rounds_next:  # no device is opened during them
            self._wait_until_open()

    def _wait_until_open(self) -> None:
        for child in self._waiting:
            if not child.wait_until_ready():
                self._exit_like(child)

    def _exit_like(self, child: Child) -> NoReturn:
        self._kill_waiting()
        exit_like(child.status)

    def _let_go_of_waiting(self) -> None:
        """Kill those that wait for their turns: they are forked anew."""
        self._next -= len(self._waiting)
        self._kill_waiting()

    def _kill_waiting(self) -> None:
        kill_all(self._waiting)
        self._waiting = []

    def _kill_orphans(self) -> None:
        spare = {child.pid for child in (*self._waiting, *self._staying)}
        if self._profiling is not None:
            spare.add(self._profiling.pid)
        self._left_running = max(self._left_running, kill_orphans(spare))

    def _names_to_profile(self, last: ProcessResult) -> list[str]:
        measured = {candidate.variant for candidate in last.candidates}
        if self._job.profile is not None and not self._job.profile.every:
            measured &= self._stop_rule.extremes() | {*self._job.profile.also}
        return [info.name for info in self._job.subject.variants if info.name in measured]

    def _profile(self, names: list[str], choices: Sequence[Choice]) -> None:
        """Profile, in a process that nothing is measured in; where it dies, the variants after that
        one in another.
        """
        while names:
            self._channel.take_ownership()
            self._channel.flush()
            child = self._profiling or self._fork_profiling(names, choices)
            self._profiling = None
            child.send("begin")
            child.wait()
            kill_orphans()
            if not child.status:
                return
            if os.waitstatus_to_exitcode(child.status) == -signal.SIGTERM:
                exit_like(child.status)  # the run is being stopped
            variant = self._channel.position.variant
            self._channel.take_ownership()
            self._channel.emit(FindingMade(finding=_profiling_ended(variant, child.status)))
            if variant not in names:
                return
            names = names[names.index(variant) + 1 :]

    def _fork_profiling(self, names: Sequence[str], choices: Sequence[Choice]) -> Child:
        """Fork a process that will profile, once it is told to begin."""
        return Child(self._forks, partial(self._serve_profiling, names, choices))

    def _serve_profiling(
        self, names: Sequence[str], choices: Sequence[Choice], pipe: ParentPipe
    ) -> None:
        """In the forked process: prepare, wait for its turn, and profile."""
        _be_silent()
        profiler = Profiler(self._job, names, choices, self._reporter)
        failure: BaseException | None = None
        try:
            profiler.prepare()
        except BaseException as error:
            failure = error
        pipe.receive()
        self._channel.take_turn()
        self._reporter.stage(Stage.PROFILE)

        def profile() -> None:
            if failure is not None:
                raise failure
            profiler.serve()

        _guarded(self._reporter, profile)


_LONG_IMPORTS = {
    "optim": ("torch._dynamo",),
    "compile": ("torch._dynamo", "torch._inductor.compile_fx"),
}
"""Modules by the attributes of torch that import them where a process first uses these."""


def import_early(job: Measure | TimeFunctions) -> None:
    """Import what the file's code will, and takes seconds: else all wait for it once more, after
    the first process. Not where the file may set variables that are read by the import.
    """
    source = job.subject.source.removeprefix(BYTE_ORDER_MARK)
    if job.starts_matter or job.smoke or "environ" in source:
        return
    try:
        with warnings.catch_warnings(action="ignore"):
            nodes = [*ast.walk(ast.parse(source))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # it is told where the file is run
    of_torch = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "torch"
    }
    for word, names in _LONG_IMPORTS.items():
        if word in of_torch:
            _import_all(names)


def _import_all(names: Sequence[str]) -> None:
    """Import without a call to a GPU's driver: after one, a forked process cannot use the GPU."""
    # a warning of JAX, before it has a thread
    warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called")
    # with it torch asks whether there is a GPU without opening it
    ask_nvml = "PYTORCH_NVML_BASED_CUDA_CHECK"
    before = os.environ.get(ask_nvml, "0")  # as where it is not set
    os.environ[ask_nvml] = "1"
    for name in names:
        with suppress(Exception):
            importlib.import_module(name)
    os.environ[ask_nvml] = before


def _be_silent() -> None:
    """Drop what the scenario prints: the first process has printed it."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for fd in (1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)


def _profiling_ended(variant: str | None, status: int) -> Finding:
    code = os.waitstatus_to_exitcode(status)
    cause = worker_exited(code=code) if code >= 0 else ended_by(-code)
    return profiling_ended.caused_by(cause, variant)
