"""The course as a page, and its questions answered by what a run measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap

from rich.console import RenderableType
from rich.text import Text

from gpulab.catalog.listing import ScenarioRow
from gpulab.core.statuses import Clock
from gpulab.core.units import byte_count, percent_of_roof, rate, seconds, span, times
from gpulab.draw.text import Glyphs
from gpulab.features.course.report import CourseLesson, CourseStage, course_lesson
from gpulab.features.roofline.view import marked
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.sentences import sentence

PLACE = re.compile(r"\{(?P<variant>\w+)(?:\.(?P<fact>\w+)|: (?P<figure>[^}]+))\}")
"""What an answer names: `{VARIANT.FACT}`, or `{VARIANT: FIGURE}` of a figure that the lesson
reports itself.
"""
_UNKNOWN = "n/a"
_WIDEST = 78
Fact = Callable[[RunReport, VariantReport], str | None]


def _speedup(report: RunReport, variant: VariantReport) -> str | None:
    comparison = report.comparison(variant.name)
    if comparison is None or comparison.speedup is None:
        return None
    ends = span(comparison.low, comparison.high)
    return f"{times(comparison.speedup)}{f' ({ends})' if ends else ''}"


def _against_below(report: RunReport, variant: VariantReport) -> str | None:
    """The speedup over the rung below it, of a ladder."""
    of_it = [
        entry
        for entry in report.comparisons
        if entry.variant == variant.name and entry.speedup is not None
    ]
    return times(of_it[-1].speedup) if of_it else None


def _sustained(report: RunReport, variant: VariantReport) -> str | None:
    comparison = report.comparison(variant.name)
    return times(comparison.sustained.speedup) if comparison and comparison.sustained else None


def _solo(field: str, unit: str) -> Fact:
    """A mean of telemetry while it ran alone."""

    def fact(_: RunReport, variant: VariantReport) -> str | None:
        mean = variant.solo_run.means.get(field) if variant.solo_run else None
        return None if mean is None else f"{mean:.0f} {unit}"

    return fact


def _part(name: str) -> Fact:
    """A share of the step."""

    def fact(_: RunReport, variant: VariantReport) -> str | None:
        goodput = variant.goodput
        return f"{goodput.partition.get(name, 0.0):.0%}" if goodput and goodput.partition else None

    return fact


def _clock(clock: Clock) -> Fact:
    return lambda _, variant: seconds(variant.clocks[clock]) if clock in variant.clocks else None


def _verdict(report: RunReport, variant: VariantReport) -> str | None:
    comparison = report.comparison(variant.name)
    return str(comparison.verdict) if comparison else None


def _step(place: int) -> Fact:
    def fact(_: RunReport, variant: VariantReport) -> str | None:
        curve = variant.first_steps
        if curve is None:
            return (
                seconds(variant.first_step_s)
                if place == 0 and variant.first_step_s is not None
                else None
            )
        return seconds(curve.steps[place].median) if place < len(curve.steps) else None

    return fact


def _build(_: RunReport, variant: VariantReport) -> str | None:
    if variant.first_steps is not None:
        return seconds(variant.first_steps.build_s.median)
    return None if variant.build_s is None else seconds(variant.build_s)


def _goodput(_: RunReport, variant: VariantReport) -> str | None:
    share = variant.goodput.goodput if variant.goodput else None
    return None if share is None else f"{share:.0%}"


def _hidden(_: RunReport, variant: VariantReport) -> str | None:
    share = variant.goodput.hidden if variant.goodput else None
    return None if share is None else f"{share:.0%}"


FACTS: Mapping[str, Fact] = {
    "time": lambda report, variant: (
        seconds(time.median) if (time := variant.time_per(report.per)) else None
    ),
    "step": lambda _, variant: seconds(variant.time_s.median) if variant.time_s else None,
    "speedup": _speedup,
    "below": _against_below,
    "sustained": _sustained,
    "verdict": _verdict,
    "first": _step(0),
    "second": _step(1),
    "build": _build,
    "settled": lambda _, variant: (
        seconds(variant.first_steps.settled_s.median) if variant.first_steps else None
    ),
    "cost": lambda _, variant: (
        seconds(variant.first_steps.excess_s.median) if variant.first_steps else None
    ),
    "operations": lambda _, variant: (
        None if variant.operations is None else f"{variant.operations:,}"
    ),
    "goodput": _goodput,
    "hidden": _hidden,
    "launches": _part("launch-bound"),
    "data": _part("data wait"),
    "copies": _part("copies"),
    "sync": _part("sync"),
    "alloc": _part("alloc"),
    "bound": lambda _, variant: marked(variant.cause) if variant.cause else None,
    "roof": lambda _, variant: (
        f"{percent_of_roof(variant.roofline.fraction)} %" if variant.roofline else None
    ),
    "intensity": lambda _, variant: (
        f"{variant.roofline.intensity:.3g} FLOP/byte"
        if variant.roofline and variant.roofline.intensity
        else None
    ),
    "rate": lambda _, variant: (
        f"{rate(variant.flops_per_s)}FLOP/s" if variant.flops_per_s else None
    ),
    "bandwidth": lambda _, variant: (
        f"{rate(variant.bytes_per_s)}B/s" if variant.bytes_per_s else None
    ),
    "items": lambda _, variant: (
        f"{rate(variant.items_per_s)} items/s" if variant.items_per_s else None
    ),
    "peak": lambda _, variant: byte_count(variant.memory.peak) if variant.memory else None,
    "held": lambda _, variant: byte_count(variant.memory.held) if variant.memory else None,
    "reserved": lambda _, variant: (
        byte_count(variant.memory.reserved)
        if variant.memory and variant.memory.reserved is not None
        else None
    ),
    "sm": _solo("sm", "%"),
    "tensor": _solo("tensor", "%"),
    "dram": _solo("dram", "%"),
    "busy": _solo("busy", "%"),
    "power": _solo("power", "W"),
    "returns": _clock(Clock.RETURN),
    "waits": _clock(Clock.STEP),
    "device": _clock(Clock.DEVICE),
    "error": lambda _, variant: None if variant.error is None else f"{variant.error:.1e}",
    "status": lambda _, variant: (
        sentence(variant.reason) if variant.reason else str(variant.status)
    ),
}
"""What may be asked of a variant, and how it is written; None where this run did not measure it."""


def answer(template: str, report: RunReport) -> str:
    """The answer with what the run measured in its places: n/a where it did not."""
    return PLACE.sub(lambda match: _fill(match, report) or _UNKNOWN, template)


def _fill(match: re.Match[str], report: RunReport) -> str | None:
    name, fact, figure = match["variant"], match["fact"], match["figure"]
    if figure is not None:
        values = [
            entry.value
            for entry in report.figures
            if entry.variant == name and entry.name == figure
        ]
        return f"{values[-1]:.4g}" if values and values[-1] is not None else None
    try:
        variant = report.variant(name)
    except KeyError:
        return None
    return FACTS[fact](report, variant) if fact in FACTS else None


def course_page(
    stages: Sequence[CourseStage], rows: Mapping[str, ScenarioRow], glyphs: Glyphs
) -> list[RenderableType]:
    """The whole path, `rows` being the lessons by name: what to look at in each, and what to ask of
    it.
    """
    parts: list[RenderableType] = []
    for number, stage in enumerate(stages, 1):
        parts += [
            Text(glyphs(f"{number}. {stage.title}"), "bold"),
            _indented(stage.text, glyphs, 3),
            "",
        ]
        for lesson in stage.lessons:
            row = rows.get(lesson.name)
            missing = f" ({sentence(row.missing)})" if row and row.missing else ""
            title = row.title.partition(": ")[2] or row.title if row else ""
            about = f"{title[:1].upper()}{title[1:]}{missing}"
            parts += [Text("   ").append(glyphs(lesson.name), "bold"), _indented(about, glyphs, 5)]
            parts += [_indented(f"Look at: {lesson.look}", glyphs, 5)]
            parts += [_indented(line, glyphs, 5) for line in _questions(lesson, None)]
            parts.append("")
    return parts


def lesson_page(
    lesson: CourseLesson, report: RunReport | None, glyphs: Glyphs
) -> list[RenderableType]:
    """One lesson of the course; its questions with the answers that a run gives, where there is
    one.
    """
    parts: list[RenderableType] = [
        Text(glyphs(lesson.name), "bold"),
        _indented(f"Look at: {lesson.look}", glyphs, 0),
    ]
    return [*parts, "", *(_indented(line, glyphs, 0) for line in _questions(lesson, report))]


def lesson_questions(lesson: CourseLesson, glyphs: Glyphs) -> list[RenderableType]:
    """What to look at in a lesson and what to ask of its run, below its text."""
    look = _indented(f"Look at: {lesson.look}", glyphs, 0)
    return [
        look,
        "",
        Text("questions, which a run answers"),
        *(_indented(f"{line}", glyphs, 0) for line in _questions(lesson, None)),
    ]


def questions_of(report: RunReport, glyphs: Glyphs) -> list[RenderableType]:
    """The questions of the course on what has just run, each with what the run says; none of other
    scenarios.
    """
    lesson = course_lesson(report.scenario)
    if lesson is None or report.under_way or report.smoke:
        return []
    return [_indented(line, glyphs, 0) for line in _questions(lesson, report)]


def _questions(lesson: CourseLesson, report: RunReport | None) -> list[str]:
    lines = []
    for number, question in enumerate(lesson.questions, 1):
        lines.append(f"{number}. {question.ask}")
        lines += [f"   {answer(question.answer, report)}"] if report else []
    return lines


def _indented(text: str, glyphs: Glyphs, cells: int) -> Text:
    """Wrapped, each line that many cells to the right; what is indented by itself is an answer."""
    extra = len(text) - len(text.lstrip())
    indent = " " * (cells + extra)
    hanging = indent + "   " * text[:1].isdigit()
    lines = wrap(
        text.strip(),
        _WIDEST,
        initial_indent=indent,
        subsequent_indent=hanging,
        break_on_hyphens=False,
    )
    return Text("\n".join(map(glyphs, lines)), "bold" if extra else "")
