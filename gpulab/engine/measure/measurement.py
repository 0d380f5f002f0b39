"""The measurement in one process: epochs that rebuild every variant, and in each one rounds in
random order.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil
from statistics import median
from time import monotonic, perf_counter

from gpulab.core.events import OtherClock, Planned
from gpulab.core.statuses import Clock, Shows, Stage
from gpulab.engine.build import compiled
from gpulab.engine.build.build import Build
from gpulab.engine.findings import ran_one_at_a_time
from gpulab.engine.measure.candidate import Candidate
from gpulab.engine.measure.clock import returns_later
from gpulab.engine.measure.context import WorkerContext
from gpulab.engine.measure.device_clock import DeviceClock
from gpulab.engine.measure.plan import Plan, plan
from gpulab.engine.measure.process_result import ProcessResult
from gpulab.engine.processes.channel import Channel, SampleBuffer
from gpulab.engine.processes.device import release_memory
from gpulab.engine.processes.failure import first_line, forget, is_out_of_memory
from gpulab.engine.step_clock import Block
from gpulab.features.checks.replay import CONFIRM
from gpulab.features.checks.timed_steps import TimedChecks
from gpulab.features.goodput.events import Phases
from gpulab.features.goodput.findings import phases_failed
from gpulab.features.roofline.roof_probes import RoofProbes
from gpulab.scenario import CONTROL
from gpulab.stats.comparison import keys_of
from gpulab.stats.series import Epoch, Quantity
from gpulab.stats.statistics import FEWEST


@dataclass
class Recorder:
    """The epochs of one process; items are per step."""

    _channel: Channel
    _buffer: SampleBuffer
    _items: Mapping[str, float]
    _keys: Iterable[Quantity]
    epochs: int
    """Of the run, that have ended."""

    def __post_init__(self) -> None:
        self.values: list[tuple[Quantity, list[list[float]]]] = [(key, []) for key in self._keys]
        """Of each quantity, its values in every epoch of this process."""
        self._rounds: list[dict[str, float]] = []
        self._sent_at = monotonic()

    def add(self, number: int, name: str, block: Block) -> None:
        while len(self._rounds) <= number:
            self._rounds.append({})
        self._rounds[number][name] = block.time_s / self._items[name]
        if self._buffer.full:
            self.send()
        self._buffer.add(self.epochs, number, name, block)

    def last_times(self) -> dict[str, float]:
        """Seconds per step of the blocks of the last round."""
        if not self._rounds:
            return {}
        return {name: time_s * self._items[name] for name, time_s in self._rounds[-1].items()}

    def pump(self) -> None:
        """Send what is due. Call it where nothing is being timed."""
        if len(self._buffer) and monotonic() - self._sent_at >= 0.1:
            self.send()
        self._channel.pump()

    def end_epoch(self) -> None:
        epoch = Epoch(self._rounds)
        for key, values in self.values:
            epoch_values = epoch.values(key)
            if epoch_values:
                values.append(epoch_values)
        self._rounds = []
        self.epochs += 1
        self._buffer.complete(self.epochs)
        self.pump()

    def send(self) -> None:
        self._channel.emit(self._buffer.take())
        self._sent_at = monotonic()


def observe(context: WorkerContext, candidate: Candidate) -> None:
    """Time a candidate by the other clocks, and record its phases. Raises what a step raises."""
    build = candidate.build
    if build is None:
        return
    # of slow steps, of which a process takes few, in the first one alone
    wanted = not context.number or isinstance(context.clock, DeviceClock)
    if candidate.step_s >= 0.25 and not wanted:
        return
    _time_by_other_clock(context, candidate, build)
    if context.job.shows == Shows.CLOCKS and candidate.name != CONTROL:
        _time_naively(context, candidate, build)
    _record_phases(context, candidate, build)


def _time_by_other_clock(context: WorkerContext, candidate: Candidate, build: Build) -> None:
    """One block by the clock that the verdict does not take."""
    other = context.other_clock
    if other is None or candidate.name == CONTROL:
        return
    if isinstance(other, DeviceClock) and returns_later(build):
        return
    # more may not fit into a queue
    steps = min(candidate.steps, ceil(other.block_s / candidate.step_s))
    block = other.block(build, steps, lead_in=candidate.lead_in)
    exposed = isinstance(other, DeviceClock) and other.exposes(build)
    context.reporter.channel.emit(
        OtherClock(
            variant=candidate.name,
            clock=Clock(other.name),
            times_s=[block.time_s],
            exposed=exposed,
            sm_mhz=[block.sm_mhz] if block.sm_mhz else [],
        )
    )


def _time_naively(context: WorkerContext, candidate: Candidate, build: Build) -> None:
    """One block timed without a wait, and one with a wait after every step, where the clocks
    themselves are the lesson.
    """
    # a queue that is full makes the host wait after all
    steps = min(candidate.steps, 100)
    returned_s, waited_s = context.wall_clock.naive_step_s(build, steps, candidate.lead_in)
    for clock, time_s in ((Clock.RETURN, returned_s), (Clock.STEP, waited_s)):
        context.reporter.channel.emit(
            OtherClock(variant=candidate.name, clock=clock, times_s=[time_s])
        )


def _record_phases(context: WorkerContext, candidate: Candidate, build: Build) -> None:
    """One window with phases on, where the variant has any."""
    if candidate.name not in context.with_phases:
        return
    steps = max(1, min(candidate.steps, int(0.05 / candidate.step_s)))
    try:
        times = context.builder.phase_times(build, steps)
    except BaseException as error:  # it is only an observation: what was measured stays
        context.with_phases.discard(candidate.name)
        context.reporter.found(phases_failed(candidate.name, message=first_line(error)))
    else:
        running_s = times.cpu_s if context.device.type == "cpu" else {}
        context.reporter.channel.emit(
            Phases(variant=candidate.name, steps=steps, seconds=times.wall_s, running_s=running_s)
        )


class _BaselineLostError(Exception):
    """Nothing remains to compare with."""


class _TooMuchTogetherError(Exception):
    """Each variant fits into memory, all of them at once do not."""


class Measurement:
    """The epochs of all candidates, the control among them, in one process, until its share of the
    time is spent. It continues from the result of the process `before`. Where that has no plan, one
    is made after the first builds, for processes that take `start_s` to start.
    """

    def __init__(
        self,
        context: WorkerContext,
        candidates: list[Candidate],
        before: ProcessResult,
        start_s: float,
        probes: RoofProbes | None,
    ) -> None:
        self._context = context
        self.candidates = candidates
        self.exclusive = before.exclusive
        self.planned = before.plan
        self.baseline_lost = False
        self.measured_s = 0.0
        self._start_s = start_s
        self._probes = probes
        """Of the roofs that the work is held against; they share the rounds."""
        self._baseline = candidates[0].variant
        self._order = random.Random(context.seed + 2)
        items = {candidate.name: candidate.items for candidate in self.candidates}
        self.recorder = Recorder(
            context.reporter.channel, context.buffer, items, keys_of(context.job), before.epochs
        )
        self._timed_checks = TimedChecks(context)
        self._first = before.epochs
        self._builds_s = 0.0
        """Of the builds that every epoch makes anew."""
        self._torn_down_badly: set[str] = set()

    def run(self) -> None:
        """Measure. The builds of the last epoch stay, for the re-check; `close` lets them go."""
        reporter = self._context.reporter
        if self._probes:
            self._probes.prepare()
        gc.collect()
        gc.freeze()  # what is loaded by now stays: collecting between epochs then costs little
        gc.disable()
        started = perf_counter()
        try:
            self._epochs()
        except _BaselineLostError:
            self.baseline_lost = True
        finally:
            gc.enable()
        self.measured_s = perf_counter() - started
        self.recorder.send()
        self._timed_checks.finish()
        if self._probes:
            reporter.channel.emit(*self._probes.events(self._context.number))
            self._probes.close()

    def close(self) -> None:
        for candidate in self.candidates:
            self._close(candidate)

    def extremes(self, *, every: bool, also: Sequence[str]) -> list[Candidate]:
        """The baseline and the fastest candidate, by this process's times, and those named; all if
        `every`.
        """
        values = dict(self.recorder.values)
        times: dict[Candidate, float] = {}
        for candidate in self.candidates:
            epochs = values.get((candidate.name,))
            if epochs and candidate.name != CONTROL:
                times[candidate] = median(chain.from_iterable(epochs))
        if every or not times:
            return self.candidates
        fastest = min(times, key=lambda candidate: times[candidate])
        names = {self.candidates[0].name, fastest.name, *also}
        return [candidate for candidate in self.candidates if candidate.name in names]

    def _epochs(self) -> None:
        ends = None
        while True:
            try:
                self._build_all()
            except _TooMuchTogetherError:
                self.exclusive = True
                self.close()
                self._let_go()
                self._context.reporter.found(ran_one_at_a_time())
            if self.planned is None:
                self.planned = self._plan()
            planned = self.planned
            # the builds that a process keeps, the control's among them, are none of its stretch
            if ends is None:
                ends = perf_counter() + planned.stretch_s
            if self.exclusive:
                self._exclusive_rounds(planned)
            else:
                self._interleaved_rounds(planned, ends)
            self.recorder.end_epoch()
            if self.recorder.epochs - self._first >= planned.epochs or perf_counter() >= ends:
                return
            for candidate in self.candidates:
                if not candidate.kept:
                    self._close(candidate)
            self._let_go()

    def _let_go(self) -> None:
        self._context.builder.free_padding()
        if not any(candidate.kept for candidate in self.candidates):
            compiled.reset()
        release_memory(self._context.device)

    def _plan(self) -> Plan:
        for candidate in list(self.candidates) if self.exclusive else ():
            self._build(candidate)
            self._close(candidate)
            release_memory(self._context.device)
        job = self._context.job
        planned = plan(
            time_s=job.time_s,
            round_s=sum(candidate.round_s for candidate in self.candidates),
            builds_s=self._builds_s,
            start_s=self._start_s,
            processes=1 if job.smoke else FEWEST,
            exclusive=self.exclusive,
            brief=job.brief,
        )
        self._context.reporter.channel.emit(
            Planned(
                rounds=planned.rounds,
                epochs=planned.epochs,
                processes=planned.processes,
                expected_s=planned.expected_s,
            )
        )
        return planned

    def _shuffled(self) -> list[Candidate]:
        order = list(self.candidates)
        self._order.shuffle(order)
        return order

    def _interleaved_rounds(self, planned: Plan, ends: float) -> None:
        # At a moment that no step can foresee; an epoch of one round has its own after it.
        checked_after = self._order.randrange(planned.rounds)
        first = self.recorder.epochs == self._first
        for number in range(planned.rounds):
            round_started = perf_counter()
            for candidate in self._shuffled():
                self._block(number, candidate)
            self.recorder.pump()
            if self._probes:
                self._probes.after_round(self.recorder.last_times(), perf_counter() - round_started)
            # Later epochs count as much as the first: none is left with fewer rounds than it.
            over = first and perf_counter() >= ends
            if number == checked_after or (over and number < checked_after):
                for candidate, error in self._timed_checks.check(self.candidates):
                    self._drop(candidate, Stage.MEASURE, error)
            if over:
                break
        if self.recorder.epochs == self._first:
            for candidate in list(self.candidates):
                self._observe(candidate)

    def _exclusive_rounds(self, planned: Plan) -> None:
        for candidate in self._shuffled():
            if self._build(candidate):
                for number in range(planned.rounds):
                    self._block(number, candidate)
                if self.recorder.epochs == self._first:
                    self._observe(candidate)
                self._look(candidate)
                self.recorder.pump()
            self._close(candidate)
            release_memory(self._context.device)
        self._judge_looks()

    def _look(self, candidate: Candidate, attempt: int = 0) -> None:
        if candidate.build is None:
            return
        try:
            self._timed_checks.look(candidate, attempt)
        except BaseException as error:
            if not is_out_of_memory(error):
                self._drop(candidate, Stage.MEASURE, error)

    def _judge_looks(self) -> None:
        """Check the outputs of what ran one at a time. What looks wrong is built, and looked at,
        again; a candidate that fails each time is taken out.
        """
        baseline = self.candidates[0]
        failed = self._timed_checks.judge(baseline, self.candidates[1:])
        for attempt in range(1, CONFIRM):
            for candidate in (baseline, *(candidate for candidate, _ in failed)) if failed else ():
                if self._build(candidate):
                    self._look(candidate, attempt)
                self._close(candidate)
                release_memory(self._context.device)
            suspects = [candidate for candidate, _ in failed if candidate in self.candidates]
            failed = self._timed_checks.judge(baseline, suspects)
        for candidate, error in failed:
            self._drop(candidate, Stage.MEASURE, error)

    def _observe(self, candidate: Candidate) -> None:
        try:
            observe(self._context, candidate)
        except BaseException as error:
            self._drop(candidate, Stage.MEASURE, error)

    def _block(self, number: int, candidate: Candidate) -> None:
        if candidate.build is None:
            return
        self._context.reporter.position.move(Stage.MEASURE, candidate.variant.name)
        try:
            block = self._timed(candidate, candidate.build)
        except BaseException as error:
            self._drop(candidate, Stage.MEASURE, error)
        else:
            self.recorder.add(number, candidate.name, block)

    def _timed(self, candidate: Candidate, build: Build) -> Block:
        """One block, on the values that the checks choose for it."""
        clock = self._context.clock
        checks = self._timed_checks
        interruption = checks.prepare(candidate)
        block = clock.block(
            build, candidate.steps, lead_in=candidate.lead_in, interruption=interruption
        )
        checks.compare(candidate)
        return block

    def _build_all(self) -> None:
        self._builds_s = 0.0
        if not self.exclusive:
            for candidate in self._shuffled():
                if candidate.build is None:
                    self._build(candidate)

    def _build(self, candidate: Candidate) -> bool:
        """Build at a fresh address, and step until what the first steps set up is in place."""
        builder = self._context.builder
        position = self._context.reporter.position
        stage = Stage.BUILD
        position.move(stage, candidate.variant.name)
        builder.pad()
        try:
            build = builder.build(candidate.variant)
            candidate.build = build
            stage = Stage.MEASURE
            position.move(stage, candidate.variant.name)
            first_step_s = builder.first_step(build)
            seconds = build.build_s + max(0.0, first_step_s - candidate.step_s)
            if candidate.block_s < 0.01:
                self._context.clock.block(build, candidate.steps)
        except BaseException as error:
            # later ones have the same builds, and would mix two ways of pairing
            first = not self.recorder.epochs
            job = self._context.job
            # the points of a sweep, in its final, may not fit into memory together either
            may_run_alone = job.increasing_memory or any(
                info.is_point for info in job.subject.variants
            )
            if may_run_alone and first and not self.exclusive and is_out_of_memory(error):
                forget(error)
                raise _TooMuchTogetherError from None
            self._drop(candidate, stage, error)
            return False
        if candidate.kept:
            self._start_s += seconds
        else:
            self._builds_s += seconds
        self._context.reporter.channel.pump()
        return True

    def _close(self, candidate: Candidate) -> None:
        build = candidate.build
        if build is None:
            return
        candidate.build = None
        name = candidate.variant.name
        self._context.reporter.position.move(Stage.TEARDOWN, name)
        try:
            build.close()
        except BaseException as error:
            if name not in self._torn_down_badly:  # each epoch would say it again
                self._torn_down_badly.add(name)
                self._context.reporter.failed(name, Stage.TEARDOWN, error)

    def _drop(self, candidate: Candidate, stage: Stage, error: BaseException) -> None:
        """Take a candidate out; without its baseline nothing remains to compare."""
        self._context.reporter.failed(candidate.variant.name, stage, error)
        self._close(candidate)
        self.candidates = [other for other in self.candidates if other is not candidate]
        if candidate.variant is self._baseline:
            raise _BaselineLostError
