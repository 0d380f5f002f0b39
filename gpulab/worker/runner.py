"""What one measuring process does, from loading the file to what follows the rounds."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import monotonic

from gpulab.protocol.events import Built, Examined, ProcessStarted, Reported, Stopped, VariantSkipped, WorkerReady
from gpulab.protocol.finding import finding
from gpulab.protocol.jobs import Measure, ScenarioFile, TimeFunctions
from gpulab.protocol.statuses import CeilingChoice, CheckKind, Per, Stage
from gpulab.scenario import CONTROL, Variant, Work
from gpulab.worker.building import compiled, tensors
from gpulab.worker.building.build import Build, Builder
from gpulab.worker.building.lab import WorkerLab
from gpulab.worker.building.load import load
from gpulab.worker.calibration.calibration import Calibration
from gpulab.worker.calibration.roof_probes import RoofProbes, roof_probes
from gpulab.worker.checking.streams import Streams
from gpulab.worker.checking.timer_brackets import bracket
from gpulab.worker.checks import Checker
from gpulab.worker.conductor import Ask, Begin
from gpulab.worker.context import WorkerContext
from gpulab.worker.handover import CandidateFacts, Handover, expensive_modules
from gpulab.worker.measurement import Measurement
from gpulab.worker.process import memory
from gpulab.worker.process.device import environment, open_device, waiter, warm_context
from gpulab.worker.process.errors import RefusedError, UncheckedError
from gpulab.worker.process.exception_text import first_line
from gpulab.worker.process.reporting import Reporter
from gpulab.worker.process.sample_buffer import SampleBuffer
from gpulab.worker.process.startup import startup_s
from gpulab.worker.profiling.counting import count
from gpulab.worker.timing.candidate import Candidate, calibrate, warm, warm_up
from gpulab.worker.timing.clocks import clocks_for
from gpulab.worker.timing.device_clock import DeviceClock
from gpulab.worker.timing.plan import is_kept
from gpulab.worker.timing.solo_run import solo_run

_HOST_MARGIN, _HOST_MARGIN_S = 1.1, 50e-6
_SEED_STEP, _SEEDS = 1_000_003, 2**31
_SEED_BYTES = 4
_START_S = 0.3
"""What a process is expected to take to start, until one has."""
_ROOM_FOR_CONTEXTS = 32 << 30
"""Memory of a device on which the contexts of eight processes, half a gigabyte each, are in nobody's way."""
_LONG_STEP_S = 0.25
"""A step that is not taken once more just to be checked in every process: its timed blocks are, and it is at the end.
"""
_LONG_BLOCK_S = 0.1
"""A block that warms itself."""


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
        begin: Begin,
        ask: Ask,
    ) -> None:
        self._job, self._reporter, self._buffer = job, reporter, buffer
        self._number, self._begin, self._ask = number, begin, ask
        self._before: Handover | None = None
        self._declared: set[str] = set()
        """Dtypes of the work that variants declare."""
        self._works: list[Work] = []
        """What variants declare."""
        self._kept: set[Build] = set()
        """Builds that are too expensive for every epoch."""
        self._started = monotonic()

    def serve(self) -> None:
        job, reporter = self._job, self._reporter
        first, failure = self._number == 0, None
        if first:
            self._begin()
            reporter.stage(Stage.LOAD)
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
        device, info, wait = self._device, self._info, reporter.wait
        self._declared = set(before.declared if before else ())
        seed = _seed(job.seed, self._number)
        epochs = before.epochs if before else 0
        reporter.channel.emit(ProcessStarted(process=self._number, seed=seed, epoch=epochs, startup_s=startup_s()))
        lab = WorkerLab(device, info, reporter.position)
        params = dict(job.subject.params) if isinstance(job.subject, ScenarioFile) else {}
        builder = Builder(lab, params, seed, wait)
        clock, other_clock = clocks_for(job, device, info, wait)
        self._context = WorkerContext(
            job=job,
            number=self._number,
            seed=seed,
            device=device,
            wait=wait,
            reporter=reporter,
            buffer=self._buffer,
            builder=builder,
            checker=Checker(builder, reporter.channel.emit),
            clock=clock,
            other_clock=other_clock,
            streams=Streams(device),
            checked=set(before.checked) if before else _checked(variants) if isinstance(job, Measure) else set(),
            with_phases=set(before.with_phases) if before else set(),
        )
        candidates = self._prepare_again(variants, before) if before else self._prepare(variants)
        if candidates:
            if before is None:
                self._measure_ceilings()
            self._measure(candidates)
        else:
            self._ask(Handover())
        for (variant, name), value in lab.figures.items():
            reporter.channel.emit(Reported(variant=variant, name=name, value=value))

    def _load(self, *, first: bool) -> list[Variant]:
        """Open the device and run the scenario's file. Only the first process tells of it."""
        job, reporter = self._job, self._reporter
        device, info = open_device(job.device, job.threads)
        self._device, self._info = device, info
        if isinstance(job, Measure) and job.increasing_memory and device.type == "cpu":
            memory.limit_to_free_memory()
        if first:  # the process that forks those that measure is the parent of everything that belongs to the run
            ready = WorkerReady(pid=os.getppid(), device=info, environment=environment())
            reporter.channel.emit(ready)
        reporter.wait = waiter(device)
        self._calibration = Calibration(reporter, device, info, reporter.wait)
        scenario = load(job.subject)
        if not first and device.type == "cuda" and info.memory_bytes >= _ROOM_FOR_CONTEXTS:
            warm_context(device)
        return [scenario.variants[variant.name] for variant in job.subject.variants if variant.missing is None]

    def _prepare(self, variants: list[Variant]) -> list[Candidate]:
        """Check, calibrate and warm up each variant on a build of its own; none where the baseline fails."""
        candidates: list[Candidate] = []
        for variant in variants:
            if self._reporter.too_large is not None:
                reason = finding("smaller_did_not_fit", variant.name, smaller=self._reporter.too_large)
                self._reporter.channel.emit(VariantSkipped(variant=variant.name, reason=reason))
                continue
            candidate = self._prepare_variant(variant, candidates[0].items if candidates else None)
            if candidate is not None:
                candidates.append(candidate)
            elif not candidates and isinstance(self._job, Measure):
                return []
            self._release()
        return [*candidates[:1], *map(_control, candidates[:1]), *candidates[1:]]

    def _prepare_variant(self, variant: Variant, baseline_items: float | None) -> Candidate | None:
        reporter, context, name = self._reporter, self._context, variant.name
        build: Build | None = None
        frames = compiled.frames()
        try:
            reporter.stage(Stage.BUILD, name)
            build = context.builder.build(variant)
            reporter.stage(Stage.CHECK, name)
            first_step_s = self._check(variant, build, baseline_items)
            reporter.stage(Stage.CALIBRATE, name)
            candidate = calibrate(context.clock, variant, build)
            reporter.stage(Stage.WARM_UP, name)
            warm_up(context.clock, reporter.channel, candidate, build)
            self._check_device_clock(candidate, build)
            self._check_streams(candidate, build)
            # What is compiled is one operation to torch, whatever is in it.
            self._count(name, build, countable=compiled.frames() == frames)
            if name in context.checked:
                context.checker.still(name, build)
            self._declare(build)
            setting_up_s = max(0.0, first_step_s - candidate.step_s)
            if is_kept(build.build_s, setting_up_s, context.job.time_s) and not context.one_at_a_time:
                candidate.kept, candidate.build = True, build
                self._kept.add(build)
        except BaseException as error:
            reporter.failed(name, reporter.position.stage, error)
            return None
        finally:
            if build is not None and build not in self._kept:
                self._close(variant, build)
        return candidate

    @property
    def _exclusive(self) -> bool:
        """Whether variants were found not to fit into memory together."""
        return self._before is not None and self._before.exclusive

    def _prepare_again(self, variants: list[Variant], before: Handover) -> list[Candidate]:
        """The candidates of an earlier process, their outputs compared on this one's data, and their code warm."""
        by_name = {variant.name: variant for variant in variants}
        context = self._context
        context.checker.resume(before.candidates[0].variant, before.dtype, before.stateful)
        candidates: list[Candidate] = []
        for facts in before.candidates:
            variant = by_name[facts.variant]
            candidate = Candidate(facts.name, variant, facts.items, facts.steps, facts.step_s, kept=facts.kept)
            if facts.name == CONTROL or self._prepare_variant_again(candidate):
                candidates.append(candidate)
            elif not candidates and isinstance(self._job, Measure):
                return []
            self._release()
        return candidates

    def _prepare_variant_again(self, candidate: Candidate) -> bool:
        reporter, context, variant = self._reporter, self._context, candidate.variant
        name, build, fit = variant.name, None, False
        stage = Stage.BUILD
        reporter.position.move(stage, name)
        try:
            context.builder.pad()
            build = context.builder.build(variant)
            stage = Stage.CHECK
            reporter.position.move(stage, name)
            context.builder.first_step(build)
            compiled.strict()
            # The others are compared with the baseline's output, however long it takes.
            is_baseline = variant.name == context.checker.baseline
            if name in context.checked and (is_baseline or candidate.step_s < _LONG_STEP_S):
                context.checker.still(name, build)
            self._declare(build)
            stage = Stage.WARM_UP
            reporter.position.move(stage, name)
            if candidate.block_s < _LONG_BLOCK_S:
                warm(context.clock, candidate, build)
            fit = True
        except BaseException as error:
            reporter.failed(name, stage, error)
        finally:
            if fit and (candidate.kept or not (context.one_at_a_time or self._exclusive)):
                candidate.build = build  # of its first epoch
            elif build is not None:
                self._close(variant, build)
        return fit

    def _check(self, variant: Variant, build: Build, baseline_items: float | None) -> float:
        """Take the first step, and compare outputs where there are any; seconds of that step.

        RefusedError, WrongOutputError.
        """
        context, name, work = self._context, variant.name, build.work
        inputs = tensors.live_leaves("inputs", work.inputs) if name in context.checked else []
        saved = tensors.copies(inputs)
        phases = context.builder.lab.phases
        phases.used = False
        first_step_s = context.builder.first_step(build)
        if phases.used:
            context.with_phases.add(name)
        compiled.strict()
        self._reporter.channel.emit(
            Built(
                variant=name,
                build_s=build.build_s,
                first_step_s=first_step_s,
                items=work.items,
                bytes=work.bytes,
                flops=work.flops,
                dtype=work.dtype,
            )
        )
        if variant.against is not None:
            self._require_equal_items(build, baseline_items)
        if name not in context.checked:
            return first_step_s
        try:
            self._reporter.channel.emit(context.checker.before(name, build, inputs, saved))
        except UncheckedError as error:
            self._reporter.failed(name, Stage.CHECK, error)
            # Without the baseline's output there is nothing to compare any other with.
            context.checked -= {name} if baseline_items is not None else set(context.checked)
        for notice in context.checker.findings:
            self._reporter.notice(notice.code, notice.variant, **notice.values)
        context.checker.findings.clear()
        return first_step_s

    def _declare(self, build: Build) -> None:
        work = build.work
        self._works.append(Work(lambda: None, bytes=work.bytes, flops=work.flops, dtype=work.dtype))

    def _require_equal_items(self, build: Build, baseline_items: float | None) -> None:
        items = build.work.items
        per_step = isinstance(self._job, Measure) and self._job.per == Per.STEP
        if baseline_items is not None and per_step and items != baseline_items:
            raise RefusedError(finding("items_differ", items=items, baseline=baseline_items))

    def _check_device_clock(self, candidate: Candidate, build: Build) -> None:
        """The device clock against the host's, once for each variant: work that its events miss must not look fast."""
        clocks = (self._context.clock, self._context.other_clock)
        clock = next((clock for clock in clocks if isinstance(clock, DeviceClock)), None)
        if clock is None:
            return
        clock.block(build, candidate.steps)
        exposed = clock.exposes(build)
        if exposed:
            self._reporter.notice("gaps_in_device_time", candidate.name)
        if clock.flush or exposed:
            return
        device_s, host_s, queueing_s = clock.against_host(build, candidate.steps)
        # A device that starts late, behind a long queueing, still ends within the sum of the two.
        if host_s > _HOST_MARGIN * (device_s + queueing_s) + _HOST_MARGIN_S:
            reason = finding("work_beside_the_stream", candidate.name, host_s=host_s, device_s=device_s)
            examined = Examined(variant=candidate.name, check=CheckKind.STREAMS, ok=False, reason=reason)
            self._reporter.channel.emit(examined)
            raise RefusedError(reason, check=CheckKind.STREAMS)

    def _check_streams(self, candidate: Candidate, build: Build) -> None:
        """Whether the work of a step is over when the clock says so, on any stream and in any thread."""
        examined = self._context.streams.examine(candidate.name, build, candidate.steps, candidate.step_s)
        self._reporter.channel.emit(examined)
        if examined.reason is not None:
            raise RefusedError(examined.reason, check=CheckKind.STREAMS)

    def _count(self, name: str, build: Build, *, countable: bool) -> None:
        """Look into one untimed step of work that is declared."""
        work = build.work
        if self._context.job.ceilings == CeilingChoice.NONE or not (work.flops or work.bytes):
            return
        self._reporter.stage(Stage.COUNT, name)
        self._declared.add(work.dtype or "fp32")
        if countable and (counted := count(name, build)) is not None:
            self._reporter.channel.emit(counted)

    def _measure_ceilings(self) -> None:
        # All ceilings of a GPU take half a minute, and they are kept.
        enough_known = self._reporter.position.ceilings_known or self._context.job.quick
        if not self._declared or (self._context.device.type == "cuda" and enough_known):
            return
        self._reporter.stage(Stage.CEILINGS)
        try:
            self._calibration.beside_a_run(self._declared)
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
        reason = self._ask(self._handover(measurement, prepared_s))
        if reason is None:
            measurement.close()
            return
        exclusive = measurement.exclusive
        for candidate in measurement.candidates:
            if candidate.name != CONTROL and (candidate.build is not None or exclusive):
                self._after_rounds(Stage.RE_CHECK, candidate, self._bracket, exclusive=exclusive)
        self._reporter.channel.emit(Stopped(reason=reason))
        for candidate in measurement.candidates:
            if candidate.name in context.checked:
                self._after_rounds(Stage.RE_CHECK, candidate, self._check_again, exclusive=exclusive)
        if context.job.solo_runs:
            for candidate in measurement.candidates:
                if candidate.name != CONTROL:
                    self._after_rounds(Stage.SOLO_RUN, candidate, self._solo_run, exclusive=exclusive)
        measurement.close()

    def _roof_probes(self) -> RoofProbes | None:
        """Of the work that is declared; None where nothing is drawn of it, or nothing may run beside a variant."""
        context = self._context
        if context.job.ceilings == CeilingChoice.NONE or context.clock.flush or context.one_at_a_time:
            return None
        if context.device.type == "cuda" and context.number:  # its roofs hardly drift, and take seconds to reach
            return None
        probes = roof_probes(context.device, self._info, self._works)
        return RoofProbes(context.clock, context.device, probes, context.seed) if probes else None

    def _handover(self, measurement: Measurement, prepared_s: float) -> Handover:
        context = self._context
        return Handover(
            candidates=[
                CandidateFacts(
                    name=candidate.name,
                    variant=candidate.variant.name,
                    items=candidate.items,
                    steps=candidate.steps,
                    step_s=candidate.step_s,
                    kept=candidate.kept,
                )
                for candidate in measurement.candidates
            ],
            plan=measurement.planned,
            epochs=measurement.recorder.epochs,
            values=measurement.recorder.values,
            exclusive=measurement.exclusive,
            baseline_lost=measurement.baseline_lost,
            measured_s=measurement.measured_s,
            start_s=prepared_s if self._before else _START_S,
            checked=sorted(context.checked),
            stateful=sorted(context.checker.stateful),
            dtype=context.checker.dtype,
            with_phases=sorted(context.with_phases),
            declared=sorted(self._declared),
            modules=expensive_modules(),
        )

    def _after_rounds(
        self, stage: Stage, candidate: Candidate, act: Callable[[Candidate], None], *, exclusive: bool
    ) -> None:
        """Do something more with the last build of a candidate; where it ran alone, with another one."""
        variant = candidate.variant
        self._reporter.stage(stage, variant.name)
        try:
            act(candidate)
        except BaseException as error:
            self._reporter.failed(variant.name, stage, error)
        if exclusive and candidate.build is not None:
            self._close(variant, candidate.build)
            candidate.build = None
            self._release()

    def _solo_run(self, candidate: Candidate) -> None:
        """Run one variant by itself for long enough that counters at a few hertz can be attributed to it."""
        context = self._context
        if candidate.build is None:
            candidate.build = context.builder.build(candidate.variant)
            context.builder.first_step(candidate.build)
        channel, time_s = self._reporter.channel, context.job.time_s
        channel.emit(solo_run(context.wall_clock, channel, candidate, time_s))

    def _bracket(self, candidate: Candidate) -> None:
        """Have the session time some steps as well."""
        context = self._context
        if candidate.build is None:
            candidate.build = context.builder.build(candidate.variant)
            context.builder.first_step(candidate.build)
        bracket(context, candidate)

    def _check_again(self, candidate: Candidate) -> None:
        context, variant = self._context, candidate.variant

        def rebuild() -> Build:
            return context.builder.build(variant)

        if candidate.build is None:
            candidate.build = rebuild()
        self._reporter.channel.emit(context.checker.after(variant.name, candidate.build, rebuild))

    def _close(self, variant: Variant, build: Build) -> None:
        self._reporter.position.move(Stage.TEARDOWN, variant.name)
        try:
            build.close()
        except BaseException as error:
            self._reporter.failed(variant.name, Stage.TEARDOWN, error)

    def _release(self) -> None:
        compiled.reset()
        memory.release(self._context.device)


def _control(baseline: Candidate) -> Candidate:
    """A second build of the baseline, measured as if it were a variant."""
    control = Candidate(CONTROL, baseline.variant, baseline.items, baseline.steps, baseline.step_s)
    control.kept = baseline.kept
    return control


def _seed(pinned: int | None, process: int) -> int:
    """Of the data, the order and the padding of one process: fresh entropy, or what follows from a pinned seed."""
    if pinned is None:
        return int.from_bytes(os.urandom(_SEED_BYTES)) % _SEEDS
    return (pinned + process * _SEED_STEP) % _SEEDS if process else pinned


def _checked(variants: list[Variant]) -> set[str]:
    """The variants whose output is compared: none without the baseline's, nor those that are there for scale alone."""
    if not variants or variants[0].unchecked is not None:
        return set()
    return {variant.name for variant in variants if variant.unchecked is None and variant.against is not None}
