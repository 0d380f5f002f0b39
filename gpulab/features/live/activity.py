"""What a run under way is doing, and why, in words; and how far its preparation is."""

from __future__ import annotations

from typing import NamedTuple

from gpulab.core.statuses import CheckKind, Stage, Status
from gpulab.core.units import plural, seconds
from gpulab.draw.area import Area
from gpulab.draw.panel import name_width
from gpulab.report.live import LiveReport
from gpulab.report.report import Progress, VariantReport


class _Doing(NamedTuple):
    """What a stage is on the screen, what it does, and why."""

    shown: str
    words: str
    why: str = ""


STAGES = {
    Stage.START: _Doing(
        "start",
        "importing torch",
        "in a fresh process, where nothing that ran before can change a time",
    ),
    Stage.LOAD: _Doing(
        "start", "reading the scenario", "and looking at the device that it is to run on"
    ),
    Stage.BUILD: _Doing(
        "check", "building", "its inputs are made, and its very first step is taken"
    ),
    Stage.TUNE: _Doing("check", "tuning", "the fastest of its choices is what will be compared"),
    Stage.CHECK: _Doing("check", "checking", "a wrong answer that is fast is not compared"),
    Stage.CALIBRATE: _Doing(
        "check", "calibrating", "how many steps a timed block must hold to be timed well"
    ),
    Stage.WARM_UP: _Doing("check", "warming up", "until its times stop falling"),
    Stage.COUNT: _Doing(
        "check", "counting the operations of", "and their FLOPs and bytes, for the roofline"
    ),
    Stage.MEASURE: _Doing(
        "measure", "preparing the rounds", "all variants take turns, in several fresh processes"
    ),
    Stage.RE_CHECK: _Doing("re-check", "re-checking"),
    Stage.SOLO_RUN: _Doing("alone", "running"),
    Stage.CEILINGS: _Doing("ceilings", "measuring roofs"),
    Stage.PROFILE: _Doing("profile", "profiling"),
    Stage.COUNTERS: _Doing("profile", "sampling counters of"),
    Stage.TEARDOWN: _Doing("profile", "ending the process"),
    Stage.END: _Doing("profile", "ending"),
}
"""In the order of a run. What is over before one can read its name is of the next one, or of the
last.
"""


def activity(progress: Progress) -> str:
    """Return what it is doing: a stage, its variant, and what of it."""
    if progress.stage == Stage.MEASURE and progress.planned_processes:
        return f"measuring process {progress.process}"
    words = STAGES[progress.stage].words
    if progress.variant:
        words += f" {progress.variant}"
    if progress.stage == Stage.SOLO_RUN:
        words += " alone"
    return f"{words}: {progress.detail}" if progress.detail else words


def time_left(progress: Progress) -> str:
    """To the end of measuring; empty where nothing is known of it, or it is over."""
    left_s = progress.remaining_s or 0.0
    return f"up to {left_s:.0f} s left" if left_s >= 1 else ""


def draw_preparation(run: LiveReport, area: Area) -> None:
    """Draw what goes on and why, and what is known of each variant so far."""
    progress = run.report.progress
    area.put(0, 0, f"{activity(progress)}, {run.stage_s:.1f} s", "bold")
    rows = max(0, area.height - 2)
    area.put(1, 0, STAGES[progress.stage].why)
    names = name_width(run, area.width)
    each = 2 if rows >= 2 * len(run.variants) else 1
    for place, variant in enumerate(_visible(run, rows // each)):
        row = 2 + each * place
        area.put(row, 0, variant.name, most=names)
        area.put(row, names + 2, _known_of(run, variant))
        if each > 1:
            passed = run.detail.passed.get(variant.name, ())
            area.put(row + 1, names + 2, ", ".join(kind for kind in CheckKind if kind in passed))


def _visible(run: LiveReport, most: int) -> list[VariantReport]:
    """So many variants, with the one that is prepared and the next one."""
    names = [variant.name for variant in run.variants]
    first = 0
    if run.report.progress.variant in names:
        first = names.index(run.report.progress.variant) + 2 - most
    first = max(0, min(first, len(names) - most))
    return run.variants[first : first + most]


def _known_of(run: LiveReport, variant: VariantReport) -> str:
    if variant.status not in (Status.OK, Status.PENDING):
        return str(variant.status)
    passed = run.detail.passed.get(variant.name, ())
    facts = []
    if variant.build_s is not None:
        facts.append(f"built in {seconds(variant.build_s)}")
    if variant.first_step_s is not None:
        facts.append(f"first step {seconds(variant.first_step_s)}")
    if passed:
        facts.append(f"{plural(len(passed), 'check')} passed")
    return ", ".join(facts) or state_of(run, variant)


def state_of(run: LiveReport, variant: VariantReport) -> str:
    """In a word or two, how far its preparation is."""
    progress = run.report.progress
    if progress.variant == variant.name and progress.stage != Stage.MEASURE:
        return STAGES[progress.stage].words.removesuffix(" the operations of")
    passed = run.detail.passed.get(variant.name, ())
    if passed:
        return f"{plural(len(passed), 'check')} passed"
    return "waiting"
