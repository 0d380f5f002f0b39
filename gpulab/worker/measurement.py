"""The measurement: epochs that rebuild every variant, and in each one rounds in random order."""

from __future__ import annotations

import gc
import random
from math import ceil
from time import perf_counter

from gpulab.analysis.comparison import are_narrow, is_narrow_time, keys_of, pairs_of
from gpulab.analysis.statistics import FEWEST
from gpulab.protocol.events import OtherClock, Phases, Planned, Stopped
from gpulab.protocol.jobs import TimeFunctions
from gpulab.protocol.statuses import Clock, Stage, StopReason
from gpulab.scenario import CONTROL
from gpulab.worker.building import compiled
from gpulab.worker.context import WorkerContext
from gpulab.worker.process.exception_text import first_line, forget
from gpulab.worker.process.failure import is_out_of_memory
from gpulab.worker.process.memory import release
from gpulab.worker.timing.candidate import Candidate
from gpulab.worker.timing.device_clock import DeviceClock
from gpulab.worker.timing.plan import Plan, plan
from gpulab.worker.timing.recorder import Recorder

_SETTLE_S, _SETTLING_BLOCKS = 0.01, 3
_LOOK_EVERY = 10
_PHASES_S = 0.05
_MOST_OTHER_TIMES = 10_000
"""A run of a day has more epochs than fit into one event."""


class _BaselineLostError(Exception):
    """Nothing remains to compare with."""


class _TooMuchTogetherError(Exception):
    """Each variant fits into memory, all of them at once do not."""


class Measurement:
    """Runs the epochs of all candidates until they are narrow enough, or the time or the epochs are spent."""

    def __init__(self, context: WorkerContext, candidates: list[Candidate]) -> None:
        self._context = context
        baseline = candidates[0]
        control = Candidate(CONTROL, baseline.variant, baseline.items, baseline.steps, baseline.step_s)
        self.candidates = [baseline, control, *candidates[1:]]
        self.exclusive = context.exclusive
        self._order = random.Random((context.job.seed or 0) + 2)
        items = {candidate.name: candidate.items for candidate in self.candidates}
        self._recorder = Recorder(context.reporter.channel, context.buffer, items, keys_of(context.job))
        self._other_times: dict[str, list[float]] = {}
        self._exposed: set[str] = set()
        self._torn_down_badly: set[str] = set()
        self._rounds_s = self._builds_s = self._longest_build_s = 0.0

    def run(self) -> None:
        """Measure. The builds of the last epoch stay, for the re-check; `close` lets them go."""
        reporter = self._context.reporter
        reporter.stage(Stage.MEASURE)
        gc.collect()
        gc.freeze()  # what is loaded by now stays: collecting between epochs then costs little
        gc.disable()
        try:
            reason = self._epochs()
        except _BaselineLostError:
            reason = StopReason.FAILED
        finally:
            gc.enable()
        self._recorder.send()
        if self._context.other_clock is not None:
            clock = Clock(self._context.other_clock.name)
            for name, all_times in self._other_times.items():
                times = all_times[:: max(1, ceil(len(all_times) / _MOST_OTHER_TIMES))]
                exposed = name in self._exposed
                reporter.channel.emit(OtherClock(variant=name, clock=clock, times_s=times, exposed=exposed))
        reporter.channel.emit(Stopped(reason=reason))

    def close(self) -> None:
        for candidate in self.candidates:
            self._close(candidate)

    def _epochs(self) -> StopReason:
        planned: Plan | None = None
        while True:
            try:
                self._build_all()
            except _TooMuchTogetherError:
                self.exclusive = True
                self._let_go()
                self._context.reporter.notice("ran_one_at_a_time")
            if planned is None:
                planned = self._plan()
            if self.exclusive:
                self._exclusive_rounds(planned)
            else:
                self._interleaved_rounds(planned)
            self._recorder.end_epoch()
            if reason := self._stop_reason(planned):
                return reason
            self._let_go()

    def _let_go(self) -> None:
        self.close()
        self._context.builder.free_padding()
        compiled.reset()
        release(self._context.device)

    def _stop_reason(self, planned: Plan) -> StopReason | None:
        job, epochs = self._context.job, self._recorder.epochs
        if job.stop_early and epochs >= planned.epochs and self._is_narrow(planned):
            return StopReason.WIDTH
        spent = self._rounds_s >= job.time_s or self._builds_s >= job.time_s
        if spent and (epochs >= FEWEST or planned.expensive):
            return StopReason.TIME
        enough = planned.most is not None and epochs >= planned.most
        return StopReason.EPOCHS if enough and job.stop_early else None

    def _is_narrow(self, planned: Plan) -> bool:
        names = {candidate.name for candidate in self.candidates}
        job, expensive = self._context.job, planned.expensive
        if isinstance(job, TimeFunctions):  # their time is all there is to say of them
            times = (self._recorder.interval((name,), expensive=expensive) for name in names)
            if not all(map(is_narrow_time, times)):
                return False
        return are_narrow(self._recorder.interval(pair, expensive=expensive) for pair in pairs_of(job, names))

    def _plan(self) -> Plan:
        if self.exclusive:
            self._build_each_once()
        planned = plan(
            time_s=self._context.job.time_s,
            round_s=sum((candidate.steps + 1) * candidate.step_s for candidate in self.candidates),
            longest_build_s=self._longest_build_s,
            builds_s=self._builds_s,
            exclusive=self.exclusive,
        )
        self._context.reporter.channel.emit(
            Planned(rounds=planned.rounds, epochs=planned.epochs, floor=planned.floor, expensive=planned.expensive)
        )
        return planned

    def _shuffled(self) -> list[Candidate]:
        order = list(self.candidates)
        self._order.shuffle(order)
        return order

    def _interleaved_rounds(self, planned: Plan) -> None:
        job = self._context.job
        last = self._recorder.epochs + 1 == planned.most
        for number in range(planned.rounds):
            for candidate in self._shuffled():
                self._block(number, candidate)
            self._recorder.pump()
            if not planned.expensive or number < FEWEST or number % _LOOK_EVERY:
                continue
            # Pairs of one build are narrow by nature: width counts only once all builds are in.
            if self._rounds_s >= job.time_s or (last and job.stop_early and self._is_narrow(planned)):
                break
        for candidate in list(self.candidates):
            self._time_by_other_clock(candidate)
            self._record_phases(candidate)

    def _exclusive_rounds(self, planned: Plan) -> None:
        for candidate in self._shuffled():
            if self._build(candidate):
                for number in range(planned.rounds):
                    self._block(number, candidate)
                self._time_by_other_clock(candidate)
                self._record_phases(candidate)
                self._recorder.pump()
            self._close(candidate)
            release(self._context.device)

    def _time_by_other_clock(self, candidate: Candidate) -> None:
        """One block per epoch by the clock that the verdict does not take."""
        other = self._context.other_clock
        if other is None or candidate.build is None or candidate.name == CONTROL:
            return
        try:
            time_s = other.block(candidate.build, candidate.steps).time_s
        except BaseException as error:
            self._drop(candidate, Stage.MEASURE, error)
        else:
            self._other_times.setdefault(candidate.name, []).append(time_s)
            if isinstance(other, DeviceClock) and other.exposes(candidate.build):
                self._exposed.add(candidate.name)

    def _record_phases(self, candidate: Candidate) -> None:
        """One window per epoch with phases on, where the variant has any."""
        context, build = self._context, candidate.build
        if build is None or candidate.name not in context.with_phases:
            return
        steps = max(1, min(candidate.steps, int(_PHASES_S / candidate.step_s)))
        try:
            times = context.builder.phase_times(build, steps)
        except BaseException as error:  # it is only an observation: what was measured stays
            context.with_phases.discard(candidate.name)
            context.reporter.notice("phases_failed", candidate.name, message=first_line(error))
        else:
            running_s = times.cpu_s if context.device.type == "cpu" else {}
            context.reporter.channel.emit(
                Phases(variant=candidate.name, steps=steps, seconds=times.wall_s, running_s=running_s)
            )

    def _block(self, number: int, candidate: Candidate) -> None:
        if candidate.build is None:
            return
        self._context.reporter.position.move(Stage.MEASURE, candidate.variant.name)
        started = perf_counter()
        try:
            block = self._context.clock.block(candidate.build, candidate.steps)
        except BaseException as error:
            self._drop(candidate, Stage.MEASURE, error)
        else:
            self._recorder.add(number, candidate.name, block)
        self._rounds_s += perf_counter() - started

    def _build_all(self) -> None:
        if not self.exclusive:
            for candidate in self._shuffled():
                self._build(candidate)

    def _build_each_once(self) -> None:
        for candidate in list(self.candidates):
            self._build(candidate)
            self._close(candidate)
            release(self._context.device)

    def _build(self, candidate: Candidate) -> bool:
        """Build at a fresh address, and step until what the first steps set up is in place."""
        builder, position = self._context.builder, self._context.reporter.position
        stage = Stage.BUILD
        position.move(stage, candidate.variant.name)
        builder.pad()
        try:
            build = candidate.build = builder.build(candidate.variant)
            stage = Stage.MEASURE
            position.move(stage, candidate.variant.name)
            first_step_s = builder.first_step(build)
            seconds = build.build_s + max(0.0, first_step_s - candidate.step_s)
            for _ in range(_SETTLING_BLOCKS if candidate.block_s < _SETTLE_S else 0):
                self._context.clock.block(build, candidate.steps)
        except BaseException as error:
            first = not self._recorder.epochs  # later ones have the same builds, and would mix two ways of pairing
            increasing = self._context.increasing_memory
            if increasing and first and not self.exclusive and is_out_of_memory(error):
                forget(error)
                raise _TooMuchTogetherError from None
            self._drop(candidate, stage, error)
            return False
        self._builds_s += seconds
        self._longest_build_s = max(self._longest_build_s, seconds)
        self._context.reporter.channel.pump()
        return True

    def _close(self, candidate: Candidate) -> None:
        build, candidate.build = candidate.build, None
        if build is None:
            return
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
        baseline = self.candidates[0].variant
        self.candidates = [other for other in self.candidates if other is not candidate]
        if candidate.variant is baseline:
            raise _BaselineLostError
