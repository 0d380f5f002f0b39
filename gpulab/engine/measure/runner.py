"""What one measuring process does, from loading the file to what follows the rounds.

The first process checks, calibrates and warms up for all of them; the others continue from the
result of the one before, and check their outputs again on their own data. Everything that the
scenario can do wrong ends as an event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from gpulab.core.events import ProcessStarted, Reported, Stopped
from gpulab.core.jobs import Measure, ProfileOptions, TimeFunctions
from gpulab.core.payloads import RANK_LINKS
from gpulab.core.statuses import CeilingChoice, Shows, Stage
from gpulab.engine.build.build import Build
from gpulab.engine.build.compiled import vector_instructions
from gpulab.engine.build.load import LongImports
from gpulab.engine.measure.candidate import Candidate, facts_of
from gpulab.engine.measure.context import (
    LoadedJob,
    Process,
    WorkerContext,
    load_job,
    nothing_before,
    open_context,
)
from gpulab.engine.measure.measurement import Measurement
from gpulab.engine.measure.preparation import Preparation, release
from gpulab.engine.measure.process_result import ProcessResult
from gpulab.engine.processes.child import Preload, Turn
from gpulab.engine.processes.failure import first_line
from gpulab.engine.processes.reporting import Reporter
from gpulab.engine.processes.startup import startup_s
from gpulab.engine.ranks.ranks import Ranks
from gpulab.engine.ranks.ranks import start as start_ranks
from gpulab.features import needed, present
from gpulab.features.roofline.findings import ceilings_failed
from gpulab.features.roofline.roof_probes import RoofProbes, are_all_probed, roof_probes
from gpulab.scenario import CONTROL

_ALONE = present("alone.worker")  # before any process is forked
_FIRST_STEPS = present("first_steps.worker")

_FIRST_PROBED = 5
_PROBED = 4
"""Processes that probe a CPU's roofs: the first five, whose outermost values hold the median with
94 %, and every fourth. Arrays beyond its caches take as long as the rounds.
"""


def measure(job: Measure | TimeFunctions, reporter: Reporter, process: Process) -> None:
    """Load, prepare and measure in this process, and in those of the other ranks."""
    ranks = start_ranks(job, process.seed)  # while no device is open, and no thread runs
    try:
        _measure(job, reporter, process, ranks)
    finally:
        if ranks is not None:
            ranks.close()


def _measure(
    job: Measure | TimeFunctions, reporter: Reporter, process: Process, ranks: Ranks | None
) -> None:
    first = process.number == 0
    preloads: _Preloads | None = None
    if first:
        process.turn.begin()
        reporter.stage(Stage.LOAD)
        preloads = _Preloads(job, process.turn)
    loaded: LoadedJob | BaseException
    try:
        if job.shows == Shows.CURVE:
            needed("first_steps.worker")
        loaded = load_job(job, reporter, ranks, first=first)
    except BaseException as error:
        loaded = error
    before = None if first else process.turn.begin()
    started = monotonic()
    if isinstance(loaded, BaseException):
        reporter.failed(None, reporter.position.stage, loaded)
        process.turn.end(ProcessResult())
        return
    before = before or nothing_before(job, loaded.variants)
    if preloads is not None:
        preloads.device_opened()
    reporter.channel.emit(
        ProcessStarted(
            process=process.number,
            seed=process.seed,
            fork_server=process.fork_server,
            epoch=before.epochs,
            startup_s=startup_s(),
        )
    )
    context = open_context(job, loaded, before, reporter, process)
    _ProcessRun(context, loaded, process.turn, before, preloads, started).run()
    if ranks is not None:
        reporter.channel.emit(*ranks.events())
    for (variant, name), value in context.builder.lab.figures.items():
        reporter.channel.emit(Reported(variant=variant, name=name, value=value))


class _Preloads:
    """The imports of the first process that take long, made so that no other process makes them."""

    def __init__(self, job: Measure | TimeFunctions, turn: Turn) -> None:
        self._imports = LongImports(job.device)
        self._turn = turn
        # where the first steps of a process are shown, its imports are a part of them
        self._share_modules = job.shows != Shows.CURVE
        self._sent = Preload(opened=True)

    def device_opened(self) -> None:
        self._turn.preload(self._sent)

    def variant_prepared(self) -> None:
        self._send(rounds_next=False)

    def rounds_next(self) -> None:
        self._send(rounds_next=True)
        self._imports.end()

    def _send(self, *, rounds_next: bool) -> None:
        preload = Preload(
            modules=self._imports.modules if self._share_modules else [],
            vector_instructions=vector_instructions(),
            opened=True,
            rounds_next=rounds_next,
        )
        if preload != self._sent:
            self._sent = preload
            self._turn.preload(preload)


@dataclass
class _ProcessRun:
    """One process's part of the run, once the file is loaded."""

    _context: WorkerContext
    _loaded: LoadedJob
    _turn: Turn
    _before: ProcessResult
    _preloads: _Preloads | None
    _started: float

    def __post_init__(self) -> None:
        self._reporter = self._context.reporter
        prepared = self._preloads.variant_prepared if self._preloads else None
        self._preparation = Preparation(self._context, self._before, prepared)

    def run(self) -> None:
        curve = self._context.job.shows == Shows.CURVE
        if curve and self._context.number:
            self._take_first_steps(self._before)
            return
        candidates = self._preparation.candidates(self._loaded.variants)
        if not candidates or self._attempt_failed(candidates):
            self._turn.end(ProcessResult())
            return
        if curve:
            self._plan_first_steps(candidates)
            return
        if self._preloads is not None:
            self._preloads.rounds_next()
        self._measure(candidates)

    def _attempt_failed(self, candidates: list[Candidate]) -> bool:
        """Return whether an exercise's answer failed its checks: nothing is left to compare."""
        job = self._context.job
        if not isinstance(job, Measure) or not job.subject.exercise:
            return False
        return len({candidate.variant.name for candidate in candidates}) < 2

    def _plan_first_steps(self, candidates: list[Candidate]) -> None:
        """All that the first process does where the others take the first steps: it has checked."""
        context = self._context
        assert _FIRST_STEPS is not None
        self._reporter.stage(Stage.MEASURE)
        self._reporter.channel.emit(
            _FIRST_STEPS.planned(candidates, context.job.time_s, smoke=context.job.smoke)
        )
        facts = [facts_of(candidate) for candidate in candidates]
        for candidate in candidates:
            if candidate.build is not None:
                context.close(candidate.variant, candidate.build)
        self._turn.end(ProcessResult(candidates=facts, choices=context.choices))

    def _take_first_steps(self, before: ProcessResult) -> None:
        """The first steps of one variant; one that fails has no other turn."""
        assert _FIRST_STEPS is not None
        facts = _FIRST_STEPS.variant_of_process(before.candidates, self._context.number)
        by_name = {variant.name: variant for variant in self._loaded.variants}
        candidates = before.candidates
        try:
            _FIRST_STEPS.take_first_steps(self._context, by_name[facts.variant])
        except BaseException as error:
            self._reporter.failed(facts.variant, self._reporter.position.stage, error)
            candidates = [other for other in candidates if other.variant != facts.variant]
            if all(other.name == CONTROL for other in candidates):
                candidates = []
        result = ProcessResult(
            candidates=candidates, measured_s=monotonic() - self._started, choices=before.choices
        )
        reason = self._turn.end(result)
        if reason is not None:
            self._reporter.channel.emit(Stopped(reason=reason))

    def _measure(self, candidates: list[Candidate]) -> None:
        """The rounds of this process; and where it was the last, what follows them."""
        context = self._context
        start_s = monotonic() - self._started
        if not context.number:
            self._reporter.stage(Stage.MEASURE)
            start_s = 0.3  # what the next ones are expected to take, until one has
        measurement = Measurement(context, candidates, self._before, start_s, self._roof_probes())
        measurement.run()
        slower = None
        alone = self._preparation.alone
        if alone is not None and not measurement.baseline_lost:
            slower = alone.time_later(measurement.candidates[0])
        reason = self._turn.end(self._result(measurement, start_s, slower))
        if reason is None:
            measurement.close()
            return
        self._reporter.channel.emit(Stopped(reason=reason))
        self._check_finally(measurement)
        measurement.close()
        self._measure_ceilings()

    def _are_probed(self) -> bool:
        """Return whether the rounds themselves measured all that the work is held against."""
        works = self._preparation.works
        return self._may_probe() and are_all_probed(self._loaded.info, works)

    def _may_probe(self) -> bool:
        """False where nothing is drawn of the roofs, or nothing may run beside a variant."""
        context = self._context
        # a GPU's roofs hardly drift, and one block of them is at whatever clock the others left
        beside = not (context.clock.flush or context.one_at_a_time or context.device.type == "cuda")
        return beside and context.job.ceilings != CeilingChoice.NONE

    def _roof_probes(self) -> RoofProbes | None:
        """Return probes of the roofs that the declared work needs; None where they are not probed
        in this process.
        """
        context = self._context
        if not self._may_probe():
            return None
        if context.number >= _FIRST_PROBED and context.number % _PROBED:
            return None
        probes = roof_probes(self._loaded.info, self._preparation.works)
        return RoofProbes(context.clock, probes, context.seed)

    def _result(
        self, measurement: Measurement, start_s: float, slower: float | None
    ) -> ProcessResult:
        context = self._context
        alone = self._preparation.alone
        return ProcessResult(
            candidates=[facts_of(candidate) for candidate in measurement.candidates],
            plan=measurement.planned,
            epochs=measurement.recorder.epochs,
            values=measurement.recorder.values,
            exclusive=measurement.exclusive,
            baseline_lost=measurement.baseline_lost,
            first=alone.first if alone else None,
            alone_s=alone.per_item_s if alone else {},
            slower=slower,
            measured_s=measurement.measured_s,
            start_s=start_s,
            checked=context.checked,
            stateful=context.checker.stateful,
            drawing=context.checker.drawing,
            widened=context.checker.stepping.widened,
            dtype=context.checker.stepping.dtype,
            with_phases=context.with_phases,
            declared=self._preparation.declared,
            choices=context.choices,
        )

    def _check_finally(self, measurement: Measurement) -> None:
        """In the last process: compare the outputs once more, and run variants by themselves."""
        exclusive = measurement.exclusive
        for candidate in measurement.candidates:
            if candidate.name != CONTROL and (candidate.build is not None or exclusive):
                self._act(Stage.RE_CHECK, candidate, self._check_again, exclusive=exclusive)
        context = self._context
        job = context.job
        if not job.solo_runs or not (context.wall_clock.waits or job.gpu_beside_cpu):
            return
        if _ALONE is None:
            return
        channel = self._reporter.channel

        profile = job.profile or ProfileOptions()
        clock = context.wall_clock

        def solo_run(candidate: Candidate, _: Build) -> None:
            averaged = profile.utilization
            run = _ALONE.solo_run(clock, channel, candidate, job.time_s, averaged=averaged)
            channel.emit(run)

        for candidate in measurement.extremes(every=profile.every, also=profile.also):
            if candidate.name != CONTROL:
                self._act(Stage.SOLO_RUN, candidate, solo_run, exclusive=exclusive)

    def _act(
        self,
        stage: Stage,
        candidate: Candidate,
        act: Callable[[Candidate, Build], None],
        *,
        exclusive: bool,
    ) -> None:
        """Do something with the last build of a candidate; with another one where it ran alone."""
        context = self._context
        variant = candidate.variant
        self._reporter.stage(stage, variant.name)
        try:
            if candidate.build is None:
                candidate.build = context.builder.build(variant)
                context.builder.first_step(candidate.build)
            act(candidate, candidate.build)
        except BaseException as error:
            self._reporter.failed(variant.name, stage, error)
        if exclusive and candidate.build is not None:
            context.close(variant, candidate.build)
            candidate.build = None
            release(context)

    def _check_again(self, candidate: Candidate, build: Build) -> None:
        context = self._context
        variant = candidate.variant
        if candidate.name not in context.checked:
            return

        def rebuild() -> Build:
            return context.builder.build(variant)

        self._reporter.channel.emit(context.checker.after(variant.name, build, rebuild))

    def _measure_ceilings(self) -> None:
        """After the rounds, which had probes of the roofs that the verdict needs."""
        job = self._context.job
        declared = self._preparation.declared
        on_gpu = self._context.device.type == "cuda"
        enough_known = self._reporter.position.ceilings_known and (on_gpu or self._are_probed())
        enough_known |= on_gpu and job.quick
        ranks = self._loaded.ranks
        if ranks is not None and ranks.count > 1 and job.roof in RANK_LINKS:
            self._loaded.calibration.links(ranks, roof=job.roof, brief=True)
            return
        if not declared or enough_known:
            return
        self._reporter.stage(Stage.CEILINGS)
        try:
            release(self._context)
            self._loaded.calibration.measure_for_run(declared, job.roof)
        except Exception as error:  # the run does not depend on them, as long as the device lives
            self._reporter.found(ceilings_failed(message=first_line(error)))
            self._reporter.require_device(Stage.CEILINGS)
