"""The measurement in one process: epochs that rebuild every variant, and in each one rounds in random order."""

from __future__ import annotations

import gc
import random
from time import perf_counter

from gpulab.analysis.comparison import keys_of
from gpulab.analysis.statistics import FEWEST
from gpulab.protocol.events import Planned
from gpulab.protocol.statuses import Stage
from gpulab.worker.building import compiled
from gpulab.worker.building.build import Build
from gpulab.worker.calibration.roof_probes import RoofProbes
from gpulab.worker.checking.timed_steps import TimedChecks
from gpulab.worker.context import WorkerContext
from gpulab.worker.observations import observe
from gpulab.worker.process.exception_text import forget
from gpulab.worker.process.failure import is_out_of_memory
from gpulab.worker.process.memory import release
from gpulab.worker.process.sample_buffer import Block
from gpulab.worker.timing.candidate import Candidate
from gpulab.worker.timing.plan import Plan, plan
from gpulab.worker.timing.recorder import Recorder

_SETTLE_S, _SETTLING_BLOCKS = 0.01, 1


class _BaselineLostError(Exception):
    """Nothing remains to compare with."""


class _TooMuchTogetherError(Exception):
    """Each variant fits into memory, all of them at once do not."""


class Measurement:
    """Runs the epochs of all candidates in one process, the control's among them, until its part of the time is spent.

    `epochs` is how many the run has had before, `planned` the plan of an earlier process; without it there is a new
    one after the first builds, for processes that take `start_s` to start.
    """

    def __init__(
        self,
        context: WorkerContext,
        candidates: list[Candidate],
        *,
        epochs: int,
        planned: Plan | None,
        exclusive: bool,
        start_s: float,
        probes: RoofProbes | None = None,
    ) -> None:
        self._context = context
        self.candidates = candidates
        self.exclusive = exclusive
        self.planned = planned
        self.baseline_lost = False
        self.measured_s = 0.0
        self._start_s = start_s
        self._probes = probes
        """Of the roofs that the work is held against; they share the rounds."""
        self._baseline = candidates[0].variant
        self._order = random.Random(context.seed + 2)
        items = {candidate.name: candidate.items for candidate in self.candidates}
        self.recorder = Recorder(context.reporter.channel, context.buffer, items, keys_of(context.job), epochs)
        self._timed_checks = TimedChecks(context)
        self._first = epochs
        self._builds_s = 0.0
        """Of the builds that every epoch makes anew."""
        self._torn_down_badly: set[str] = set()

    def run(self) -> None:
        """Measure. The builds of the last epoch stay, for the re-check; `close` lets them go."""
        reporter = self._context.reporter
        if self.planned is None:
            reporter.stage(Stage.MEASURE)
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
        reporter.compare_lab()
        if self._probes:
            reporter.channel.emit(*self._probes.events(self._context.number))
            self._probes.close()

    def close(self) -> None:
        for candidate in self.candidates:
            self._close(candidate)

    def _epochs(self) -> None:
        ends = None
        while True:
            try:
                self._build_all()
            except _TooMuchTogetherError:
                self.exclusive = True
                self.close()
                self._let_go()
                self._context.reporter.notice("ran_one_at_a_time")
            planned = self.planned = self.planned or self._plan()
            if ends is None:  # the builds that a process keeps, the control's among them, are none of its stretch
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
        release(self._context.device)

    def _plan(self) -> Plan:
        if self.exclusive:
            self._build_each_once()
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
                self._check_timed_steps()
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
                self.recorder.pump()
            self._close(candidate)
            release(self._context.device)

    def _check_timed_steps(self) -> None:
        """Whether what is timed computes. A candidate that fails is taken out."""
        for candidate, error in self._timed_checks.check(self.candidates):
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
        clock, checks = self._context.clock, self._timed_checks
        interruption = checks.prepare(candidate)
        block = clock.block(build, candidate.steps, lead_in=candidate.lead_in, interruption=interruption)
        checks.compare(candidate)
        return block

    def _build_all(self) -> None:
        self._builds_s = 0.0
        if not self.exclusive:
            for candidate in self._shuffled():
                if candidate.build is None:
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
            first = not self.recorder.epochs  # later ones have the same builds, and would mix two ways of pairing
            may_run_alone = self._context.increasing_memory or self._context.is_final
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
        self.candidates = [other for other in self.candidates if other is not candidate]
        if candidate.variant is self._baseline:
            raise _BaselineLostError
