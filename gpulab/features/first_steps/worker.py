"""The first steps of a fresh process: each is timed by itself, and nothing has warmed up before
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from gpulab.core.events import FirstSteps, Planned
from gpulab.core.statuses import Stage
from gpulab.engine.build.compiled import mark_step
from gpulab.engine.measure.candidate import Candidate
from gpulab.engine.measure.context import WorkerContext
from gpulab.engine.measure.plan import CURVE_PROCESSES
from gpulab.engine.measure.process_result import CandidateFacts
from gpulab.engine.step_clock import wait_for
from gpulab.scenario import CONTROL, Variant

_MOST_STEPS = 64
_FEWEST_STEPS = 8
_LATER_STEPS_S = 1.0
"""Seconds of steps that follow the first, where `_FEWEST_STEPS` do not take longer."""


def variant_of_process(candidates: Sequence[CandidateFacts], number: int) -> CandidateFacts:
    """The one variant whose first steps a process takes, by its number from 1: each round begins
    with another.
    """
    variants = [facts for facts in candidates if facts.name != CONTROL]
    place = (number - 1) % len(variants)
    round_number = (number - 1) // len(variants)
    return variants[(place + round_number) % len(variants)]


def planned(candidates: Sequence[Candidate], time_s: float, *, smoke: bool) -> Planned:
    """Return what the processes after the first will do: one epoch of one round each."""
    variants = len(candidates) - 1
    processes = 1 + variants * (1 if smoke else CURVE_PROCESSES)
    return Planned(rounds=1, epochs=1, processes=processes, expected_s=time_s)


def take_first_steps(context: WorkerContext, variant: Variant) -> None:
    """Build the variant, and report its first steps. Raises what the scenario raises."""
    reporter = context.reporter
    builder = context.builder
    reporter.position.move(Stage.BUILD, variant.name)
    build = builder.build(variant)
    reporter.position.move(Stage.MEASURE, variant.name)
    times: list[float] = []
    try:
        builder.seed()
        with build.context():
            while len(times) < _MOST_STEPS and (
                len(times) < _FEWEST_STEPS or sum(times[1:]) < _LATER_STEPS_S
            ):
                mark_step()
                started = perf_counter()
                wait_for(build.work.step())
                builder.wait()
                times.append(perf_counter() - started)
        build_s = build.build_s
    finally:
        reporter.position.move(Stage.TEARDOWN, variant.name)
        build.close()
    reporter.channel.emit(
        FirstSteps(variant=variant.name, process=context.number, build_s=build_s, times_s=times)
    )
