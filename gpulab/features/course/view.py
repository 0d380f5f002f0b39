"""The course as a page, and its questions answered by what a run measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from gpulab.catalog.listing import ScenarioRow
from gpulab.core.statuses import Clock
from gpulab.core.units import byte_count, percent_of_roof, rate, seconds, times, with_interval
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
    return with_interval(comparison.speedup, comparison.low, comparison.high)


def _against_below(report: RunReport, variant: VariantReport) -> str | None:
    """The speedup over the rung below it, of a ladder."""
    for comparison in reversed(report.comparisons):
        if comparison.variant == variant.name and comparison.speedup is not None:
            return times(comparison.speedup)
    return None


def _sustained(report: RunReport, variant: VariantReport) -> str | None:
    comparison = report.comparison(variant.name)
    if comparison is None or comparison.sustained is None:
        return None
    return times(comparison.sustained.speedup)


def _verdict(report: RunReport, variant: VariantReport) -> str | None:
    comparison = report.comparison(variant.name)
    return comparison.verdict.value if comparison else None


def _time(report: RunReport, variant: VariantReport) -> str | None:
    time = variant.time_per(report.per)
    return seconds(time.median) if time else None


def _field(path: str, text: Callable[[Any], str | None]) -> Fact:
    """A field of the variant by its dotted path; None where any part of it is None."""

    def fact(_: RunReport, variant: VariantReport) -> str | None:
        value: Any = variant
        for name in path.split("."):
            value = getattr(value, name)
            if value is None:
                return None
        return text(value)

    return fact


def _rate(path: str, unit: str) -> Fact:
    return _field(path, lambda value: f"{rate(value)}{unit}" if value else None)


def _entry(path: str, name: str, text: Callable[[Any], str]) -> Fact:
    """One value of a mapping of the variant; None where it has none of that name."""

    def fact(_: RunReport, variant: VariantReport) -> str | None:
        mapping: Any = variant
        for part in path.split("."):
            mapping = mapping and getattr(mapping, part)
        return text(mapping[name]) if mapping and name in mapping else None

    return fact


def _part(name: str) -> Fact:
    """A share of the step; 0 where the step has no such part."""

    def fact(_: RunReport, variant: VariantReport) -> str | None:
        if variant.goodput is None or not variant.goodput.partition:
            return None
        return f"{variant.goodput.partition.get(name, 0.0):.0%}"

    return fact


def _solo(name: str, unit: str) -> Fact:
    """A mean of telemetry while the variant ran alone."""
    return _entry("solo_run.means", name, lambda mean: f"{mean:.0f} {unit}")


def _clock(clock: Clock) -> Fact:
    return _entry("clocks", clock, seconds)


def _step(place: int) -> Fact:
    def fact(_: RunReport, variant: VariantReport) -> str | None:
        if variant.first_steps is not None:
            steps = variant.first_steps.steps
            return seconds(steps[place].median) if place < len(steps) else None
        if place or variant.first_step_s is None:
            return None
        return seconds(variant.first_step_s)

    return fact


def _build(report: RunReport, variant: VariantReport) -> str | None:
    path = "build_s" if variant.first_steps is None else "first_steps.build_s.median"
    return _field(path, seconds)(report, variant)


def _status(_: RunReport, variant: VariantReport) -> str:
    return sentence(variant.reason) if variant.reason else str(variant.status)


FACTS: Mapping[str, Fact] = {
    "time": _time,
    "step": _field("time_s.median", seconds),
    "speedup": _speedup,
    "below": _against_below,
    "sustained": _sustained,
    "verdict": _verdict,
    "first": _step(0),
    "second": _step(1),
    "build": _build,
    "settled": _field("first_steps.settled_s.median", seconds),
    "cost": _field("first_steps.excess_s.median", seconds),
    "operations": _field("operations", "{:,}".format),
    "goodput": _field("goodput.goodput", "{:.0%}".format),
    "hidden": _field("goodput.hidden", "{:.0%}".format),
    "launches": _part("launch-bound"),
    "data": _part("data wait"),
    "copies": _part("copies"),
    "sync": _part("sync"),
    "alloc": _part("alloc"),
    "bound": _field("cause", marked),
    "roof": _field("roofline.fraction", lambda share: f"{percent_of_roof(share)} %"),
    "intensity": _field("roofline.intensity", "{:.3g} FLOP/byte".format),
    "rate": _rate("flops_per_s", "FLOP/s"),
    "bandwidth": _rate("bytes_per_s", "B/s"),
    "items": _rate("items_per_s", " items/s"),
    "peak": _field("memory.peak", byte_count),
    "held": _field("memory.held", byte_count),
    "reserved": _field("memory.reserved", byte_count),
    "sm": _solo("sm", "%"),
    "tensor": _solo("tensor", "%"),
    "dram": _solo("dram", "%"),
    "busy": _solo("busy", "%"),
    "power": _solo("power", "W"),
    "returns": _clock(Clock.RETURN),
    "waits": _clock(Clock.STEP),
    "device": _clock(Clock.DEVICE),
    "error": _field("error", "{:.1e}".format),
    "status": _status,
}
"""What may be asked of a variant, and how it is written; None where this run did not measure it."""


def answer(template: str, report: RunReport) -> str:
    """The answer with what the run measured in its places: n/a where it did not."""
    return PLACE.sub(lambda match: _fill(match, report) or _UNKNOWN, template)


def _fill(match: re.Match[str], report: RunReport) -> str | None:
    name, fact, figure = match.group("variant", "fact", "figure")
    if figure is not None:
        value = None
        for entry in report.figures:
            if entry.variant == name and entry.name == figure:
                value = entry.value
        return None if value is None else f"{value:.4g}"
    if fact not in FACTS:
        return None
    try:
        return FACTS[fact](report, report.variant(name))
    except KeyError:
        return None


def course_page(
    stages: Sequence[CourseStage], rows: Mapping[str, ScenarioRow]
) -> list[RenderableType]:
    """The whole path, `rows` being the lessons by name: what to look at in each, and what to ask of
    it.
    """
    parts: list[RenderableType] = []
    for number, stage in enumerate(stages, 1):
        parts += [Text(f"{number}. {stage.title}", "bold"), _indented(stage.text, 3), ""]
        for lesson in stage.lessons:
            about = ""
            if row := rows.get(lesson.name):
                title = row.title.partition(": ")[2] or row.title
                about = f"{title[:1].upper()}{title[1:]}"
                if row.missing:
                    about += f" ({sentence(row.missing)})"
            parts += [Text("   ").append(lesson.name, "bold"), _indented(about, 5)]
            parts += [_indented(f"Look at: {lesson.look}", 5)]
            parts += [_indented(line, 5) for line in _questions(lesson, None)]
            parts.append("")
    return parts


def lesson_page(lesson: CourseLesson, report: RunReport | None) -> list[RenderableType]:
    """One lesson of the course: its questions, with the answers of a run if there is one."""
    look = _indented(f"Look at: {lesson.look}", 0)
    questions = [_indented(line, 0) for line in _questions(lesson, report)]
    return [Text(lesson.name, "bold"), look, "", *questions]


def lesson_questions(lesson: CourseLesson) -> list[RenderableType]:
    """What to look at in a lesson, and its questions."""
    return [
        _indented(f"Look at: {lesson.look}", 0),
        "",
        Text("questions, which a run answers"),
        *(_indented(line, 0) for line in _questions(lesson, None)),
    ]


def questions_of(report: RunReport, width: int) -> list[RenderableType]:
    """The questions of the course on the scenario of a run, with its answers, in so many columns at
    most; empty for others.
    """
    lesson = course_lesson(report.scenario)
    if lesson is None or report.under_way or report.smoke:
        return []
    return [_indented(line, 0, min(width, _WIDEST)) for line in _questions(lesson, report)]


def _questions(lesson: CourseLesson, report: RunReport | None) -> list[str]:
    lines = []
    for number, question in enumerate(lesson.questions, 1):
        lines.append(f"{number}. {question.ask}")
        if report:
            lines.append(f"   {answer(question.answer, report)}")
    return lines


def _indented(text: str, cells: int, width: int = _WIDEST) -> Text:
    """Wrapped, each line that many cells to the right; what is indented by itself is an answer."""
    extra = len(text) - len(text.lstrip())
    indent = " " * (cells + extra)
    hanging = indent + "   " * text[:1].isdigit()
    lines = wrap(
        text.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=hanging,
        break_on_hyphens=False,
    )
    return Text("\n".join(lines), "bold" if extra else "")
