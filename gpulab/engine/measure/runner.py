"""What one measuring process does, from loading the file to what follows the rounds."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import monotonic

from gpulab.core.events import ProcessStarted, Reported, Stopped, WorkerReady
from gpulab.core.jobs import Measure, ScenarioFile, TimeFunctions
from gpulab.core.statuses import CeilingChoice, Shows, Stage
from gpulab.engine.build.build import Build, Builder
from gpulab.engine.build.compiled import vector_instructions
from gpulab.engine.build.lab import WorkerLab
from gpulab.engine.build.load import LongImports, load
from gpulab.engine.measure.candidate import Candidate, facts_of
from gpulab.engine.measure.context import WorkerContext
from gpulab.engine.measure.device_clock import clocks_for
from gpulab.engine.measure.handover import Handover
from gpulab.engine.measure.measurement import Measurement
from gpulab.engine.measure.preparation import Preparation, release
from gpulab.engine.processes.channel import SampleBuffer
from gpulab.engine.processes.children import Imports
from gpulab.engine.processes.conductor import Ask, Begin, Tell
from gpulab.engine.processes.device import (
    environment,
    limit_to_free_memory,
    open_device,
    waiter,
    warm_context,
)
from gpulab.engine.processes.failure import first_line
from gpulab.engine.processes.reporting import Reporter
from gpulab.engine.processes.startup import startup_s
from gpulab.features.alone.worker import solo_run
from gpulab.features.checks.stepping import warm_checks
from gpulab.features.checks.streams import Streams
from gpulab.features.checks.worker import Checker
from gpulab.features.first_steps.worker import planned, take_first_steps, variant_of_process
from gpulab.features.roofline.calibration import Calibration
from gpulab.features.roofline.roof_probes import RoofProbes, roof_probes
from gpulab.features.tuning.worker import Tuner
from gpulab.scenario import CONTROL, Variant

_FIRST_PROBED, _PROBED = 5, 4
"""Processes that probe a CPU's roofs: the first ones, whose outermost hold the median with 94 %,
and one of so many. Arrays beyond its caches take as long as the rounds.
"""
_START_S = 0.3
"""What a process is expected to take to start, until one has."""
_ROOM_FOR_CONTEXTS = 64 << 30
"""Memory of a device on which the contexts of sixteen processes, half a gigabyte each, are in
nobody's way.
"""


class Runner:
    """Measures in one process. Everything the scenario can do wrong ends as an event.

    The first process checks, calibrates and warms up for all of them; the others start from what
    the one before handed over, and check their outputs again on their own data.
    """

    def __init__(
        self,
        job: Measure | TimeFunctions,
        reporter: Reporter,
        buffer: SampleBuffer,
        number: int,
        conductor: int,
        seed: int,
        begin: Begin,
        tell: Tell,
        ask: Ask,
    ) -> None:
        self._job, self._reporter, self._buffer = job, reporter, buffer
        self._number, self._conductor, self._seed = number, conductor, seed
        self._begin, self._tell, self._ask = begin, tell, ask
        self._before: Handover | None = None
        self._started = monotonic()

    def serve(self) -> None:
        job, reporter = self._job, self._reporter
        first, failure = self._number == 0, None
        if first:
            self._begin()
            reporter.stage(Stage.LOAD)
            self._imports = LongImports(job.device)
        try:
            variants = self._load(first=first)
        except BaseException as error:
            failure = error
        before = self._before = None if first else self._begin()
        self._started = monotonic()
        if failure is not None:
            reporter.failed(None, reporter.position.stage, failure)
            self._ask(Handover())
            return
        self._told = Imports(opened=True)
        if first:
            self._tell(self._told)
        device, info, wait = self._device, self._info, reporter.wait
        seed, epochs = self._seed, before.epochs if before else 0
        reporter.channel.emit(
            ProcessStarted(
                process=self._number,
                seed=seed,
                conductor=self._conductor,
                epoch=epochs,
                startup_s=startup_s(),
            )
        )
        lab = WorkerLab(device, info, reporter.position)
        params = dict(job.subject.params) if isinstance(job.subject, ScenarioFile) else {}
        builder = Builder(lab, params, seed, wait)
        clock, other_clock = clocks_for(job, device, info, wait)
        known = before.choices if before else () if job.retune else job.choices
        self._tuner = lab.tuner = Tuner(job, builder, reporter, clock, known, first=before is None)
        self._context = WorkerContext(
            job=job,
            number=self._number,
            seed=seed,
            device=device,
            wait=wait,
            reporter=reporter,
            buffer=self._buffer,
            builder=builder,
            checker=Checker(
                builder,
                reporter.channel.emit,
                job.cases if isinstance(job, Measure) else (),
                roomy=not (isinstance(job, Measure) and job.increasing_memory),
            ),
            clock=clock,
            other_clock=other_clock,
            streams=Streams(device),
            checked=set(before.checked)
            if before
            else _checked(variants)
            if isinstance(job, Measure)
            else set(),
            with_phases=set(before.with_phases) if before else set(),
        )
        self._preparation = Preparation(self._context, before, self._tell_imports)
        if before is not None and self._context.shows == Shows.CURVE:
            self._first_steps(variants, before)
        elif not (candidates := self._preparation.candidates(variants)):
            self._ask(Handover())
        elif self._context.shows == Shows.CURVE:
            self._prepared(candidates)
        else:
            if before is None:
                self._tell_imports(rounds_next=True)
                self._imports.end()
            self._measure(candidates)
        for (variant, name), value in lab.figures.items():
            reporter.channel.emit(Reported(variant=variant, name=name, value=value))

    def _tell_imports(self, *, rounds_next: bool = False) -> None:
        """So that no other process makes them: but for those whose first steps are to be seen."""
        curve = isinstance(self._job, Measure) and self._job.shows == Shows.CURVE
        imports = Imports(
            modules=[] if curve else self._imports.modules,
            vector_instructions=vector_instructions(),
            opened=True,
            rounds_next=rounds_next,
        )
        if imports != self._told:
            self._told = imports
            self._tell(imports)

    def _load(self, *, first: bool) -> list[Variant]:
        """Open the device and run the scenario's file. Only the first process tells of it."""
        job, reporter = self._job, self._reporter
        device, info = open_device(job.device, job.threads)
        self._device, self._info = device, info
        if isinstance(job, Measure) and job.increasing_memory and device.type == "cpu":
            limit_to_free_memory()
        if first:  # the worker's first process is above everything that belongs to the run
            ready = WorkerReady(pid=os.getpgid(0), device=info, environment=environment())
            reporter.channel.emit(ready)
        reporter.wait = waiter(device)
        self._calibration = Calibration(reporter, device, info, reporter.wait)
        scenario = load(job.subject)
        if (
            not (first or job.starts_matter)
            and device.type == "cuda"
            and info.memory_bytes >= _ROOM_FOR_CONTEXTS
        ):
            warm_context(device)
            warm_checks(device)
        return [
            scenario.variants[variant.name]
            for variant in job.subject.variants
            if variant.missing is None
        ]

    def _prepared(self, candidates: list[Candidate]) -> None:
        """All that the first process does where the others take the first steps: it checks."""
        context, job = self._context, self._job
        self._reporter.stage(Stage.MEASURE)
        context.reporter.channel.emit(planned(candidates, job.time_s, smoke=job.smoke))
        facts = [facts_of(candidate) for candidate in candidates]
        for candidate in candidates:
            if candidate.build is not None:
                context.close(candidate.variant, candidate.build)
        self._ask(Handover(candidates=facts, choices=self._tuner.choices))

    def _first_steps(self, variants: list[Variant], before: Handover) -> None:
        """The first steps of the variant whose turn it is; one that fails has no other turn."""
        candidates, turn = before.candidates, variant_of_process(before.candidates, self._number)
        try:
            take_first_steps(
                self._context, next(variant for variant in variants if variant.name == turn.variant)
            )
        except BaseException as error:
            self._reporter.failed(turn.variant, self._reporter.position.stage, error)
            candidates = [facts for facts in candidates if facts.variant != turn.variant]
            candidates = candidates if any(facts.name != CONTROL for facts in candidates) else []
        reason = self._ask(
            Handover(
                candidates=candidates,
                measured_s=monotonic() - self._started,
                choices=before.choices,
            )
        )
        if reason is not None:
            self._reporter.channel.emit(Stopped(reason=reason))

    def _measure_ceilings(self) -> None:
        """After the rounds, which had probes of the roofs that the verdict needs."""
        job, on_gpu = self._context.job, self._context.device.type == "cuda"
        enough_known = self._reporter.position.ceilings_known or job.quick
        if not self._preparation.declared or (on_gpu and enough_known):
            return
        self._reporter.stage(Stage.CEILINGS)
        roof = job.roof if isinstance(job, Measure) else None
        try:
            release(self._context)
            self._calibration.measure_for_run(self._preparation.declared, roof)
        except Exception as error:  # the run does not depend on them, as long as the device lives
            self._reporter.notice("ceilings_failed", message=first_line(error))
            self._reporter.require_device(Stage.CEILINGS)

    def _measure(self, candidates: list[Candidate]) -> None:
        """The rounds of this process; and where it was the last, what follows them."""
        before, context = self._before, self._context
        prepared_s = monotonic() - self._started
        measurement = Measurement(
            context,
            candidates,
            epochs=before.epochs if before else 0,
            planned=before.plan if before else None,
            exclusive=before.exclusive if before else context.exclusive,
            start_s=prepared_s if before else _START_S,
            probes=self._roof_probes(),
        )
        measurement.run()
        slower = (
            None
            if measurement.baseline_lost
            else self._preparation.alone.time_later(measurement.candidates[0])
        )
        reason = self._ask(self._handover(measurement, prepared_s, slower))
        if reason is None:
            # it was, after the rounds, and nothing else follows
            self._reporter.compare_lab = lambda: None
            measurement.close()
            return
        exclusive = measurement.exclusive
        self._reporter.channel.emit(Stopped(reason=reason))
        for candidate in measurement.candidates:
            if candidate.name != CONTROL and (candidate.build is not None or exclusive):
                self._after_rounds(
                    Stage.RE_CHECK, candidate, self._check_again, exclusive=exclusive
                )
        job = context.job
        if job.solo_runs and (context.wall_clock.waits or job.gpu_beside_cpu):
            for candidate in measurement.extremes(every=job.profile is None or job.profile.every):
                if candidate.name != CONTROL:
                    self._after_rounds(
                        Stage.SOLO_RUN, candidate, self._solo_run, exclusive=exclusive
                    )
        measurement.close()
        self._measure_ceilings()

    def _roof_probes(self) -> RoofProbes | None:
        """Of the work that is declared; None where nothing is drawn of it, or nothing may run
        beside a variant.
        """
        context = self._context
        if (
            context.job.ceilings == CeilingChoice.NONE
            or context.clock.flush
            or context.one_at_a_time
        ):
            return None
        # its roofs hardly drift, and take seconds to reach
        if context.device.type == "cuda" and context.number:
            return None
        if context.number >= _FIRST_PROBED and context.number % _PROBED:
            return None
        probes = roof_probes(context.device, self._info, self._preparation.works)
        return RoofProbes(context.clock, context.device, probes, context.seed) if probes else None

    def _handover(
        self, measurement: Measurement, prepared_s: float, slower: float | None
    ) -> Handover:
        context, alone = self._context, self._preparation.alone
        return Handover(
            candidates=[facts_of(candidate) for candidate in measurement.candidates],
            plan=measurement.planned,
            epochs=measurement.recorder.epochs,
            values=measurement.recorder.values,
            exclusive=measurement.exclusive,
            baseline_lost=measurement.baseline_lost,
            first=alone.first,
            alone_s=alone.per_item_s,
            slower=slower,
            measured_s=measurement.measured_s,
            start_s=prepared_s if self._before else _START_S,
            checked=sorted(context.checked),
            stateful=sorted(context.checker.stateful),
            drawing=sorted(context.checker.drawing),
            dtype=context.checker.dtype,
            with_phases=sorted(context.with_phases),
            declared=sorted(self._preparation.declared),
            choices=self._tuner.choices,
        )

    def _after_rounds(
        self,
        stage: Stage,
        candidate: Candidate,
        act: Callable[[Candidate], None],
        *,
        exclusive: bool,
    ) -> None:
        """Do something more with the last build of a candidate; where it ran alone, with another
        one.
        """
        context, variant = self._context, candidate.variant
        self._reporter.stage(stage, variant.name)
        try:
            act(candidate)
        except BaseException as error:
            self._reporter.failed(variant.name, stage, error)
        if exclusive and candidate.build is not None:
            context.close(variant, candidate.build)
            candidate.build = None
            release(context)

    def _solo_run(self, candidate: Candidate) -> None:
        """Run one variant by itself for long enough that counters at a few hertz can be attributed
        to it.
        """
        context = self._context
        if candidate.build is None:
            candidate.build = context.builder.build(candidate.variant)
            context.builder.first_step(candidate.build)
        channel, job = self._reporter.channel, context.job
        channel.emit(solo_run(context.wall_clock, channel, candidate, job.time_s))

    def _check_again(self, candidate: Candidate) -> None:
        """Compare the output once more."""
        context, variant = self._context, candidate.variant

        def rebuild() -> Build:
            return context.builder.build(variant)

        if candidate.build is None:
            candidate.build = rebuild()
            context.builder.first_step(candidate.build)
        if candidate.name in context.checked:
            self._reporter.channel.emit(
                context.checker.after(variant.name, candidate.build, rebuild)
            )


def _checked(variants: list[Variant]) -> set[str]:
    """The variants whose output is compared: none without the baseline's, nor those that are there
    for scale alone.
    """
    if not variants or variants[0].unchecked is not None:
        return set()
    return {
        variant.name
        for variant in variants
        if variant.unchecked is None and variant.against is not None
    }
