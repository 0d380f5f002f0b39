"""`gpulab.tune` in a worker: candidates of one variant, built, checked, measured against one
another, and chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from math import exp
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

import msgspec
import torch

from gpulab.core.events import Tuned
from gpulab.core.jobs import Measure, ScenarioFile, TimeFunctions
from gpulab.core.limits import TEXT_LENGTH
from gpulab.core.payloads import Choice, Tried, Tuning
from gpulab.core.statuses import Stage
from gpulab.core.text import cut, one_line
from gpulab.engine.build import tensors
from gpulab.engine.build.agreement import agree
from gpulab.engine.build.build import Build, Builder, Generators
from gpulab.engine.measure.clock import WallClock
from gpulab.engine.measure.outputs import poison_output, read, step
from gpulab.engine.measure.plan import lead_in_steps
from gpulab.engine.processes.device import environment
from gpulab.engine.processes.failure import (
    SkippedError,
    VariantError,
    forget,
    is_out_of_memory,
    text_of,
    type_name,
)
from gpulab.engine.processes.reporting import Reporter
from gpulab.features import present
from gpulab.features.tuning.analysis import FEWEST_FINAL_ROUNDS, Tournament
from gpulab.scenario import Param, ScenarioError, Work, as_candidates

_KERNELS = present("kernels.worker")

_FINAL_SHARE = 0.5
"""Of a run's time that the final may take, after an elimination of at most all of it."""
_MANY = 100
"""Candidates from which on elimination may take longer than that, in proportion."""
_REPORT_EVERY_S = 0.5


@dataclass
class _BuiltConfig:
    """A candidate that was built and whose output agrees with the first one's."""

    text: str
    build: Build
    steps: int
    step_s: float
    lead_in: int


@dataclass(frozen=True)
class _Candidates:
    """Configurations by their texts, what makes the work of one, and random numbers as they were
    before any was made.
    """

    configs: Mapping[str, Mapping[str, Param]]
    make: Callable[..., Work]
    generators: Generators

    def work(self, text: str) -> Work:
        """Make the work of one candidate, as if it were the first."""
        self.generators.put_back()
        work: Any = self.make(**self.configs[text])
        if not isinstance(work, Work):
            kind = type(work).__name__
            raise ScenarioError(f"tune(): make returned {kind}: return Work(step, ...)")
        return work

    def none_works(self, reason: str) -> ScenarioError:
        message = f"none of {len(self.configs)} candidates works; {reason}"
        return ScenarioError(cut(message, TEXT_LENGTH))


class Tuner:
    """Chooses for the variants of one process. `choices` are those of earlier runs, and of this
    run's processes.

    Without a clock, in a process that does not time, what is not known yet stays at the first
    candidate that works.
    """

    def __init__(
        self,
        job: Measure | TimeFunctions,
        builder: Builder,
        reporter: Reporter,
        clock: WallClock | None,
        choices: Iterable[Choice],
        *,
        first: bool,
    ) -> None:
        self._job = job
        self._builder = builder
        self._reporter = reporter
        self._clock = clock
        self._choices = {choice.key: choice for choice in choices}
        self._first = first
        self._reported: set[str] = set()
        self.seconds = 0.0
        """That choosing has taken so far: no part of any build."""

    @property
    def choices(self) -> list[Choice]:
        """All that is known, for the next process."""
        return list(self._choices.values())

    def __call__(
        self, candidates: Iterable[Mapping[str, Param]], make: Callable[..., Work]
    ) -> Work:
        """The work of the best candidate. ScenarioError where none of them works, or they are no
        configurations.
        """
        configs = as_candidates(candidates)
        kernels = _KERNELS.kernels_made() if _KERNELS else []
        variant = self._reporter.position.variant or ""
        key = self._key(variant, list(configs))
        tried = _Candidates(configs, make, Generators(self._builder))
        choice = self._choices.get(key)
        if choice is not None and not self._holds(choice.tuning, configs):
            choice = None
        cached = choice is not None
        if choice is None:
            if self._job.smoke or self._clock is None:
                return self._first_that_works(tried)
            started = perf_counter()
            choice = Choice(key=key, tuning=self._tuned(variant, tried, self._clock))
            self._choices[key] = choice
            self.seconds += perf_counter() - started
            self._reporter.stage(Stage.BUILD, variant)
        if (self._first or not cached) and variant not in self._reported:
            self._reported.add(variant)
            self._reporter.channel.emit(Tuned(variant=variant, choice=choice, cached=cached))
        if _KERNELS is not None:
            _KERNELS.kernels_made(keep=kernels)  # not those of all candidates
        return tried.work(choice.tuning.tried[0].config)

    def _holds(self, tuning: Tuning, configs: Iterable[str]) -> bool:
        """Return whether an earlier choice is one of these candidates, and had as much time."""
        return tuning.time_s >= self._job.time_s and tuning.tried[0].config in configs

    def _key(self, variant: str, configs: list[str]) -> str:
        info = self._builder.lab.info
        job = self._job
        subject = job.subject
        params = subject.params if isinstance(subject, ScenarioFile) else {}
        info_of = {other.name: other for other in subject.variants}
        own = info_of.get(variant)
        of_variant, variant = (own.params, own.function or variant) if own else ({}, variant)
        versions = environment()
        del versions["python"], versions["platform"]
        known = (info.uuid or info.name, info.threads, versions, subject.source_sha256, variant)
        asked = ({**params, **of_variant}, job.clock, job.cache, configs)
        return sha256(msgspec.json.encode((known, asked), order="deterministic")).hexdigest()[:32]

    def _first_that_works(self, candidates: _Candidates) -> Work:
        problems = []
        for text in candidates.configs:
            try:
                build = Build(candidates.work(text), 0.0, None)
                with _left_alone(build):
                    step(self._builder, build)
            except Exception as error:
                problems.append(f"{text}: {_reason(error)}")
                forget(error)
                self._require_device()
            else:
                build.close()
                return candidates.work(text)
        raise candidates.none_works(problems[0])

    def _tuned(self, variant: str, candidates: _Candidates, clock: WallClock) -> Tuning:
        started = perf_counter()
        built, failed = self._built(variant, candidates, clock)
        if not built:
            raise candidates.none_works(": ".join(next(iter(failed.items()))))
        build_s = perf_counter() - started
        tournament = Tournament(
            [candidate.step_s for candidate in built], Random(self._builder.data_seed)
        )
        self._play(variant, tournament, built, clock)
        for candidate in built:
            candidate.build.restore()
            candidate.build.close()
        return Tuning(
            tried=[
                *_results(tournament, built),
                *(Tried(config=text, reason=why) for text, why in failed.items()),
            ],
            tied=len(tournament.leaders()) - 1,
            rounds=tournament.rounds,
            seconds=perf_counter() - started,
            build_s=build_s,
            time_s=self._job.time_s,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _built(
        self, variant: str, candidates: _Candidates, clock: WallClock
    ) -> tuple[list[_BuiltConfig], dict[str, str]]:
        """Those that compute what the first that works does, and of the others the reasons."""
        built: list[_BuiltConfig] = []
        failed: dict[str, str] = {}
        expected: list[torch.Tensor] = []
        out_of_memory = False
        count = len(candidates.configs)
        for number, text in enumerate(candidates.configs, 1):
            self._reporter.stage(Stage.TUNE, variant, detail=f"candidate {number} of {count}")
            try:
                build = Build(candidates.work(text), 0.0, None, f"{variant} {text}")
                with _left_alone(build):
                    output = self._output(build)
                    if built and not _agree(build, output, expected):
                        raise ScenarioError(f"computes something else than {built[0].text}")
                    expected = expected or tensors.kept(output)
                    steps, step_s = clock.steps_per_block(build)
            except Exception as error:
                out_of_memory = out_of_memory or is_out_of_memory(error)
                failed[text] = _reason(error)
                forget(error)
                self._require_device()
            else:
                built.append(_BuiltConfig(text, build, steps, step_s, lead_in_steps(steps, step_s)))
        if out_of_memory and not built:
            raise torch.OutOfMemoryError(next(iter(failed.values())))
        return built, failed

    def _output(self, build: Build) -> list[torch.Tensor]:
        """Return what a step computes, not what an earlier candidate left there. ScenarioError."""
        returned = step(self._builder, build)
        build.adopt()
        live = read(build, returned)
        if any(
            tensors.computable(tensor).isnan().any()
            for tensor in live
            if tensor.is_floating_point()
        ):
            raise ScenarioError("its output has NaN")
        before = tensors.kept(live)
        poison_output(build, live, tensors.live_leaves("inputs", build.work.inputs))
        returned = step(self._builder, build)
        output = read(build, returned)
        if not _agree(build, output, before):
            raise ScenarioError("its second step leaves another output than its first")
        return output

    def _play(
        self, variant: str, tournament: Tournament, built: list[_BuiltConfig], clock: WallClock
    ) -> None:
        started = reported = perf_counter()
        final_started: float | None = started if tournament.final else None
        while len(tournament.alive) > 1:
            now = perf_counter()
            if now - reported > _REPORT_EVERY_S:
                reported = now
                part = "final" if tournament.final else "elimination"
                self._reporter.stage(
                    Stage.TUNE, variant, detail=f"{part} of {len(tournament.alive)} candidates"
                )
            most_s = self._job.time_s * max(1.0, len(built) / _MANY)
            if final_started is None and (tournament.final or now - started > most_s):
                tournament.begin_final()
                final_started = now
            over = (
                final_started is not None and now - final_started > _FINAL_SHARE * self._job.time_s
            )
            if tournament.rounds >= FEWEST_FINAL_ROUNDS and (over or tournament.decided):
                return
            order = tournament.order()
            times = []
            for number in order:
                candidate = built[number]
                # more blocks tell more
                lead_in = candidate.lead_in if tournament.final else min(1, candidate.lead_in)
                times.append(clock.block(candidate.build, candidate.steps, lead_in=lead_in).time_s)
            tournament.add(order, times)

    def _require_device(self) -> None:
        """Ends the process where the device is in error for good."""
        self._reporter.require_device(Stage.TUNE)


def add_to_lab(
    job: Measure | TimeFunctions,
    builder: Builder,
    reporter: Reporter,
    clock: WallClock | None,
    choices: Iterable[Choice],
    *,
    first: bool,
) -> None:
    """Have the lab that variants build with choose for `gpulab.tune`."""
    builder.lab.tuner = Tuner(job, builder, reporter, clock, choices, first=first)


def _agree(build: Build, output: list[torch.Tensor], expected: list[torch.Tensor]) -> bool:
    """Within the tolerance of what is compared elsewhere; nothing to compare agrees."""
    work = build.work
    return (
        not expected or agree(output, expected, tolerance=work.tolerance, dtypes=(work.dtype,)).ok
    )


@contextmanager
def _left_alone(build: Build) -> Iterator[None]:
    """Keep what candidates share as it was: state is put back, and a candidate may not change its
    inputs.
    """
    inputs = tensors.live_leaves("inputs", build.work.inputs)
    saved = tensors.kept(inputs)
    try:
        yield
    finally:
        build.restore()
        changed = tensors.changed(inputs, saved)
        if changed:
            tensors.put_back(inputs, saved)
    if changed:
        raise ScenarioError("changes its inputs")


def _reason(error: Exception) -> str:
    if isinstance(error, SkippedError):
        return str(error.finding.values["reason"])
    if isinstance(error, VariantError):
        raise error
    first, *rest = text_of(error).strip().splitlines() or [type_name(error)]
    # of Triton's compiler the first line has a place, the last one the reason
    where = first.endswith(":") and rest
    return cut(one_line(f"{first} {rest[-1]}" if where else first), TEXT_LENGTH)


def _results(tournament: Tournament, built: list[_BuiltConfig]) -> list[Tried]:
    """The best, those tied with it, the other finalists, then those eliminated, the fastest
    first.
    """
    best, *tied = tournament.leaders()
    rest = [number for number in range(len(built)) if number not in (best, *tied)]
    rest.sort(key=lambda number: (number not in tournament.alive, tournament.ratio(number, best)))
    results = []
    for number in (best, *tied, *rest):
        times_s = tournament.times_s[number] or [built[number].step_s]
        low = high = None
        if number in tournament.alive and number != best:
            interval = tournament.interval(number, best)
            low = exp(interval.low)
            high = exp(interval.high)
        ratio = 1.0 if number == best else tournament.ratio(number, best)
        tried = Tried(
            config=built[number].text,
            time_s=median(times_s),
            blocks=len(times_s),
            ratio=ratio,
            low=low,
            high=high,
        )
        results.append(tried)
    return results
