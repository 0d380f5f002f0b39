"""From variants to candidates that can be measured: each is built, checked, calibrated and warm."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

import torch
from msgspec.structs import replace

from gpulab.core.events import Built, VariantSkipped
from gpulab.core.jobs import Measure, TimeFunctions
from gpulab.core.payloads import KernelCode
from gpulab.core.statuses import CeilingChoice, Per, Stage
from gpulab.engine.build import compiled, tensors
from gpulab.engine.build.build import Build
from gpulab.engine.findings import gaps_in_device_time, items_differ, smaller_did_not_fit
from gpulab.engine.measure.candidate import (
    Candidate,
    calibrate,
    equalize_blocks,
    facts_of,
    known_candidate,
    warm,
    warm_up,
)
from gpulab.engine.measure.clock import returns_later
from gpulab.engine.measure.context import WorkerContext
from gpulab.engine.measure.device_clock import DeviceClock
from gpulab.engine.measure.plan import is_kept, longest_block_s
from gpulab.engine.measure.process_result import ProcessResult
from gpulab.engine.processes.device import release_memory
from gpulab.engine.processes.failure import RefusedError, UncheckedError, first_line
from gpulab.features import needed, present
from gpulab.features.checks.findings import work_beside_the_stream
from gpulab.features.roofline.counting import count
from gpulab.scenario import CONTROL, Variant, Work

if TYPE_CHECKING:
    from gpulab.features.alone.worker import IsolatedTimes

_ALONE = present("alone.worker")
_KERNELS = present("kernels.worker")

_LONG_STEP_S = 0.25
"""A longer step is not taken once more in every process just to be checked: its timed blocks are
checked, and it is at the end.
"""


class Preparation:
    """Prepares the variants of one process: the first checks each fully, the others check again."""

    def __init__(
        self,
        context: WorkerContext,
        before: ProcessResult,
        prepared: Callable[[], None] | None,
    ) -> None:
        self._context = context
        self._reporter = context.reporter
        self._before = before
        self._prepared = prepared
        """Called after each variant in the first process."""
        self.declared = before.declared
        """Dtypes of the work that variants declare."""
        self.works: list[Work] = []
        """What variants declare."""
        self._kept: set[Build] = set()
        """Builds that are too expensive for every epoch."""
        # so that the order says nothing of the data
        self._order = random.Random(context.seed + 4)
        self._unread: defaultdict[str, list[Callable[[], KernelCode]]] = defaultdict(list)
        """What reads the kernels of each variant."""
        self._in_turn = ""
        """The variant that a later process checks most closely, apart from the baseline."""
        self._stage = Stage.BUILD
        """Of what a later process prepares; `gpulab.tune` moves that of the position."""
        self.alone: IsolatedTimes | None = _ALONE.IsolatedTimes(context) if _ALONE else None
        """Before all variants are built; none where they run one at a time anyway."""

    @property
    def _one_at_a_time(self) -> bool:
        """Return whether builds may not stay, or were found not to fit into memory together."""
        return self._context.one_at_a_time or self._before.exclusive

    def candidates(self, variants: list[Variant]) -> list[Candidate]:
        """Return the candidates that can be measured; none where the baseline fails."""
        if self._context.number:
            return self._again(variants, self._before)
        try:
            return self._first(variants)
        finally:
            self._read_kernels()

    def _first(self, variants: list[Variant]) -> list[Candidate]:
        """Check, calibrate and warm up each variant on a build; none if the baseline fails."""
        candidates: list[Candidate] = []
        for variant in variants:
            smaller = self._reporter.too_large
            if smaller is not None:
                reason = smaller_did_not_fit(variant.name, smaller=smaller)
                self._reporter.channel.emit(VariantSkipped(variant=variant.name, reason=reason))
                continue
            candidate = self._prepare(variant, candidates[0].items if candidates else None)
            if candidate is not None:
                candidates.append(candidate)
            elif not candidates and isinstance(self._context.job, Measure):
                return []
            release(self._context, code=not self._kept)
            if self._prepared is not None:
                self._prepared()
        most_s = longest_block_s(self._context.job.time_s, 1 + len(candidates))
        equalize_blocks(self._context.clock, self._reporter.channel, candidates, most_s)
        if not candidates:
            return []
        baseline, *others = candidates
        # a second build of the baseline, measured as if it were a variant
        facts = replace(facts_of(baseline), name=CONTROL)
        return [baseline, known_candidate(facts, baseline.variant), *others]

    def _prepare(self, variant: Variant, baseline_items: float | None) -> Candidate | None:
        """None where it fails."""
        reporter = self._reporter
        context = self._context
        name = variant.name
        build: Build | None = None
        candidate: Candidate | None = None
        frames = compiled.frames()
        try:
            reporter.stage(Stage.BUILD, name)
            if _KERNELS is not None:
                _KERNELS.kernels_made()  # drops those of a build that failed
            build = context.builder.build(variant)
            candidate = self._prepare_build(variant, build, baseline_items, frames)
        except BaseException as error:
            self._read_kernels()  # the process may end with the device
            reporter.failed(name, reporter.position.stage, error)
        if build is not None and build not in self._kept:
            context.close(variant, build)
        return candidate

    def _prepare_build(
        self, variant: Variant, build: Build, baseline_items: float | None, frames: int
    ) -> Candidate:
        """`frames`: that were compiled before it was built."""
        reporter = self._reporter
        context = self._context
        name = variant.name
        self._find_kernels(name, lambda worker: worker.readers_of_made())
        reporter.stage(Stage.CHECK, name)
        first_step_s = self._check(variant, build, baseline_items)
        # Triton compiles a kernel when it is launched.
        step = partial(context.builder.step, build)
        self._find_kernels(name, lambda worker: worker.readers_of_launched(step))
        reporter.stage(Stage.CALIBRATE, name)
        candidate = calibrate(context.clock, variant, build)
        reporter.stage(Stage.WARM_UP, name)
        warm_up(
            context.clock,
            reporter.channel,
            candidate,
            build,
            first=baseline_items is None,
            variants=sum(info.missing is None for info in context.job.subject.variants),
        )
        self._check_device_clock(candidate, build)
        # To torch, compiled code is one operation, and a kernel of the scenario's own is none.
        self._count(name, build, countable=compiled.frames() == frames and not self._unread[name])
        if name in context.checked:
            context.checker.still(name, build)
        self._declare(build)
        if baseline_items is None:
            self._time_baseline(candidate, build)
        setting_up_s = max(0.0, first_step_s - candidate.step_s)
        expensive = is_kept(build.build_s, setting_up_s, context.job.time_s)
        if expensive and not context.one_at_a_time:
            candidate.kept = True
            candidate.build = build
            self._kept.add(build)
        return candidate

    def _again(self, variants: list[Variant], before: ProcessResult) -> list[Candidate]:
        """The candidates of an earlier process, their outputs compared on this one's data, and
        their code warm.

        Some are timed alone before. The baseline is built first, for its output, and then once more
        at a random place among the others: what is built first gets other memory than what comes
        after (on one machine its reads took 10 % longer).
        """
        by_name = {variant.name: variant for variant in variants}
        context = self._context
        context.checker.resume(
            before.candidates[0].variant,
            before.dtype,
            before.stateful,
            before.drawing,
            before.widened,
        )
        candidates = [known_candidate(facts, by_name[facts.variant]) for facts in before.candidates]
        baseline, *order = candidates
        self._in_turn = self._order.choice(order[1:] or order).name
        to_time = before.time_alone if self.alone is not None else []
        alone = {candidate.name: candidate for candidate in order if candidate.name in to_time}
        # the baseline is never among them: its place may be the first
        first = alone.pop(to_time[0], None) if to_time else None
        if first is not None:
            self._build_and_time(first)
        compares = isinstance(context.job, Measure)
        fit = {baseline: self._prepare_again(baseline)}
        if compares and not fit[baseline]:
            return []
        self._time_baseline(baseline, baseline.build)
        self._order.shuffle(order)
        watched = self._watched(baseline, before)
        if baseline.build is not None and not baseline.kept and baseline.step_s < _LONG_STEP_S:
            if watched is None:
                context.close(baseline.variant, baseline.build)
            baseline.build = None
            order.insert(self._order.randint(0, len(order)), baseline)
        for candidate in alone.values():
            self._build_and_time(candidate)
            self._time_after(candidate, baseline, watched)
        for candidate in order:
            release(context, code=not any(other.kept for other in fit))
            built_later = candidate.name == CONTROL and self._one_at_a_time
            fit[candidate] = built_later or self._prepare_again(candidate)
            if candidate.variant is not baseline.variant:
                self._time_after(candidate, baseline, watched)
            if compares and candidate.variant is baseline.variant and not fit[candidate]:
                return []
        if watched is not None and watched is not baseline.build:
            context.close(baseline.variant, watched)
        release(context, code=not any(other.kept for other in fit))
        return [candidate for candidate in candidates if fit[candidate]]

    def _watched(self, baseline: Candidate, before: ProcessResult) -> Build | None:
        """The baseline's first build, where it is timed again after each other build: in processes
        in which it is the first, and where memory is no question.
        """
        context = self._context
        is_first = bool(before.time_alone) and before.time_alone[0] == baseline.variant.name
        if not is_first or self._one_at_a_time or context.job.ranks > 1:
            return None
        if context.device.type != "cpu":
            free, total = torch.cuda.mem_get_info(context.device)
            if free < total / 2:
                return None
        return baseline.build

    def _build_and_time(self, candidate: Candidate) -> None:
        if self.alone is not None:
            self.alone.build_and_time(candidate)
        release(self._context, code=not candidate.kept)

    def _time_after(self, candidate: Candidate, baseline: Candidate, watched: Build | None) -> None:
        if self.alone is not None and watched is not None:
            self.alone.time_after(candidate.name, baseline, watched)

    def _time_baseline(self, baseline: Candidate, build: Build | None) -> None:
        if self.alone is None or build is None or self._context.one_at_a_time:
            return
        self.alone.time(baseline, build)

    def _prepare_again(self, candidate: Candidate) -> bool:
        """False where it fails."""
        context = self._context
        variant = candidate.variant
        build = candidate.build
        candidate.build = None
        fit = False
        self._enter(Stage.BUILD, variant)
        try:
            context.builder.pad()
            build = build or context.builder.build(variant)
            self._enter(Stage.CHECK, variant)
            self._check_again(candidate, build)
            compiled.strict()
            self._declare(build)
            self._enter(Stage.WARM_UP, variant)
            warm(context.clock, candidate, build)
            fit = True
        except BaseException as error:
            self._reporter.failed(variant.name, self._stage, error)
        stays = candidate.kept or not self._one_at_a_time
        if fit and stays:
            candidate.build = build  # of its first epoch
        elif build is not None:
            context.close(variant, build)
        return fit

    def _check_again(self, candidate: Candidate, build: Build) -> None:
        """Take the first step; and compare the output, unless that takes long."""
        context = self._context
        variant = candidate.variant
        checker = context.checker
        # The others are compared with the baseline's output, however long it takes.
        is_baseline = variant.name == checker.baseline
        short = candidate.step_s < _LONG_STEP_S
        if variant.name not in context.checked or not (is_baseline or short):
            context.builder.first_step(build)
            return
        in_turn = is_baseline or variant.name == self._in_turn
        # what building and a step may take to be done again for other values
        most_s = 0.03 if in_turn else 0.005
        cheap = not candidate.kept and build.build_s + candidate.step_s < most_s
        checker.again(variant, build, in_turn=in_turn, cheap=cheap)

    def _enter(self, stage: Stage, variant: Variant) -> None:
        self._stage = stage
        self._reporter.position.move(stage, variant.name)

    def _check(self, variant: Variant, build: Build, baseline_items: float | None) -> float:
        """Take the first step, and compare outputs where there are any; seconds of that step.

        RefusedError, WrongOutputError.
        """
        context = self._context
        name = variant.name
        work = build.work
        inputs = tensors.live_leaves("inputs", work.inputs) if name in context.checked else []
        saved = tensors.kept(inputs)
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
        is_compared = variant.against is not None and context.job.per == Per.STEP
        if is_compared and baseline_items not in (None, work.items):
            raise RefusedError(items_differ(items=work.items, baseline=baseline_items))
        if name not in context.checked:
            return first_step_s
        try:
            self._reporter.channel.emit(context.checker.before(variant, build, inputs, saved))
        except UncheckedError as error:
            self._reporter.failed(name, Stage.CHECK, error)
            if baseline_items is None:
                context.checked.clear()  # there is no baseline's output to compare any other with
            context.checked.discard(name)
        for finding in context.checker.findings:
            self._reporter.found(finding)
        context.checker.findings.clear()
        return first_step_s

    def _declare(self, build: Build) -> None:
        work = build.work
        self.works.append(Work(lambda: None, bytes=work.bytes, flops=work.flops, dtype=work.dtype))

    def _check_device_clock(self, candidate: Candidate, build: Build) -> None:
        """Refuse work that it misses, once for each variant: it must not look fast."""
        clocks = (self._context.clock, self._context.other_clock)
        clock = next((clock for clock in clocks if isinstance(clock, DeviceClock)), None)
        if clock is None or returns_later(build):
            return
        clock.block(build, candidate.steps)
        if clock.exposes(build):
            self._reporter.found(gaps_in_device_time(candidate.name))
        if self._context.job.ranks > 1:  # a wait is for the other ranks too
            return
        missed = clock.misses(build, 1) or clock.misses(build, candidate.steps)
        if missed is not None:
            device_s, stream_s = missed
            raise RefusedError(
                work_beside_the_stream(candidate.name, host_s=device_s, device_s=stream_s)
            )

    def _count(self, name: str, build: Build, *, countable: bool) -> None:
        """Look into one untimed step of work that is declared."""
        work = build.work
        if self._context.job.ceilings != CeilingChoice.NONE and (work.flops or work.bytes):
            self.declared.add(work.dtype or "fp32")
        self._reporter.stage(Stage.COUNT, name)
        counted = count(name, build) if countable else None
        if counted is not None:
            self._reporter.channel.emit(counted)
            if counted.operations and self._wants_roofs_of_functions:
                self.declared.add("fp32")

    @property
    def _wants_roofs_of_functions(self) -> bool:
        """Functions declare no work; what their operations do follows from shapes."""
        job = self._context.job
        is_short = job.quick or job.ceilings == CeilingChoice.NONE
        return isinstance(job, TimeFunctions) and job.profile is not None and not is_short

    def _find_kernels(
        self, name: str, readers: Callable[[ModuleType], list[Callable[[], KernelCode]]]
    ) -> None:
        """Note kernels of a variant, to be read once all are known."""
        if _KERNELS is None:
            return
        try:
            self._unread[name] += readers(_KERNELS)
        except Exception as error:
            self._not_read(name, error)

    def _read_kernels(self) -> None:
        """Tell the kernels of all variants. Each disassembler takes 0.4 s: all run at once."""
        unread = [(name, read) for name, readers in self._unread.items() for read in readers]
        self._unread.clear()
        if not unread:
            return
        from gpulab.features.kernels.events import KernelsCompiled

        found: dict[str, list[KernelCode]] = {}
        with ThreadPoolExecutor(8) as pool:
            for name, reading in [(name, pool.submit(read)) for name, read in unread]:
                try:
                    found.setdefault(name, []).append(reading.result())
                except Exception as error:
                    self._not_read(name, error)
        for name, kernels in found.items():
            self._reporter.channel.emit(KernelsCompiled(variant=name, kernels=kernels))

    def _not_read(self, name: str, error: Exception) -> None:
        kernels_not_read = needed("kernels.findings").kernels_not_read
        self._reporter.found(kernels_not_read(name, message=first_line(error)))


def release(context: WorkerContext, *, code: bool = True) -> None:
    """Free what builds leave behind: cached memory, and compiled `code`, unless a build that stays
    needs it. It would be compiled again in the middle of the rounds.
    """
    if code:
        compiled.reset()
    release_memory(context.device)
