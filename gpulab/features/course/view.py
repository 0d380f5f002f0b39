"""The course as a page, and its questions answered by what a run measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from gpulab.catalog.catalog import ScenarioRow
from gpulab.core.statuses import Clock, Conclusion, Status
from gpulab.core.units import (
    byte_count,
    percent_of_roof,
    plural_of,
    rate,
    seconds,
    times,
    with_interval,
)
from gpulab.draw.blocks import Block, Fitted, Inside, Text
from gpulab.features import present
from gpulab.features.course.report import PLACE, CourseLesson, CourseStage, course_lesson
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.sentences import sentence
from gpulab.stats.comparison import Comparison
from gpulab.stats.verdicts import shown

PARENTHESIS = re.compile(r" \((?=[^()]*\{)[^()]*\)")
SENTENCE_END = re.compile(r"(?<=[^.][.?]) ")
_WIDEST = 78
Written = Callable[[RunReport, VariantReport], str | None]


def _compared(text: Callable[[Comparison], str | None]) -> Written:
    """Something of the comparison with the baseline; None without one."""

    def fact(report: RunReport, variant: VariantReport) -> str | None:
        comparison = report.comparison(variant.name)
        return text(comparison) if comparison else None

    return fact


def _compared_below(text: Callable[[Comparison], str | None]) -> Written:
    """The same of the one with the rung below it, of a ladder, or with the variant that it
    names.
    """

    def fact(report: RunReport, variant: VariantReport) -> str | None:
        measured = (entry for entry in reversed(report.comparisons) if entry.speedup is not None)
        found = next((entry for entry in measured if entry.variant == variant.name), None)
        return text(found) if found else None

    return fact


def _verdict(comparison: Comparison) -> str:
    return shown(comparison).words


def _time(report: RunReport, variant: VariantReport) -> str | None:
    time = variant.time_per(report.per)
    return seconds(time.value) if time else None


def _field(path: str, text: Callable[[Any], str | None]) -> Written:
    """A field of the variant by its dotted path, or what a mapping has there; None where any part
    of it is None, or its feature was taken out.
    """

    def fact(_: RunReport, variant: VariantReport) -> str | None:
        value: Any = variant
        for name in path.split("."):
            has = isinstance(value, Mapping)
            value = value.get(name) if has else getattr(value, name, None)
            if value is None:
                return None
        return text(value)

    return fact


def _bound(cause: Any) -> str | None:
    roofline = present("roofline.view")
    return roofline.marked(cause) if roofline else None


def _rate(path: str, unit: str) -> Written:
    return _field(path, lambda value: f"{rate(value)}{unit}" if value else None)


def _items(report: RunReport, variant: VariantReport) -> str | None:
    return _rate("items_per_s", f" {plural_of(report.item)}/s")(report, variant)


def _part(name: str) -> Written:
    """A share of the step; 0 where the step has no such part."""

    def fact(_: RunReport, variant: VariantReport) -> str | None:
        if variant.goodput is None or not variant.goodput.partition:
            return None
        return f"{variant.goodput.partition.get(name, 0.0):.0%}"

    return fact


def _solo(name: str, unit: str) -> Written:
    """A mean of telemetry while the variant ran alone."""
    return _field(f"solo_run.means.{name}", lambda mean: f"{mean:.0f} {unit}")


def _clock(clock: Clock) -> Written:
    return _field(f"clocks_s.{clock}", seconds)


def _step(place: int) -> Written:
    def fact(_: RunReport, variant: VariantReport) -> str | None:
        if (first_steps := variant.get("first_steps")) is not None:
            steps = first_steps.steps_s
            return seconds(steps[place].value) if place < len(steps) else None
        if place or variant.first_step_s is None:
            return None
        return seconds(variant.first_step_s)

    return fact


def _build(report: RunReport, variant: VariantReport) -> str | None:
    has_steps = variant.get("first_steps") is not None
    path = "first_steps.build_s.value" if has_steps else "build_s"
    return _field(path, seconds)(report, variant)


def _status(_: RunReport, variant: VariantReport) -> str:
    return sentence(variant.reason) if variant.reason else str(variant.status)


@dataclass(frozen=True)
class Fact:
    """A fact that may be asked of a variant: its text, None where a run did not measure it, and
    what it is called.
    """

    text: Written
    words: str


FACTS: Mapping[str, Fact] = {
    "time": Fact(_time, "time"),
    "step": Fact(_field("time_s.value", seconds), "time of a step"),
    "speedup": Fact(
        _compared(lambda found: with_interval(found.speedup) if found.speedup else None), "speedup"
    ),
    "below": Fact(_compared_below(lambda found: times(found.speedup)), "speedup"),
    "sustained": Fact(
        _compared(lambda found: times(found.sustained.speedup) if found.sustained else None),
        "sustained speedup",
    ),
    "verdict_below": Fact(_compared_below(_verdict), "verdict"),
    "verdict": Fact(_compared(_verdict), "verdict"),
    "first": Fact(_step(0), "first step"),
    "second": Fact(_step(1), "second step"),
    "build": Fact(_build, "build time"),
    "settled": Fact(_field("first_steps.settled_s.value", seconds), "settled step"),
    "cost": Fact(_field("first_steps.excess_s.value", seconds), "cost of the first steps"),
    "operations": Fact(_field("operations", "{:,}".format), "operations"),
    "goodput": Fact(_field("goodput.goodput", "{:.0%}".format), "computing"),
    "hidden": Fact(_field("goodput.hidden", "{:.0%}".format), "hidden copies"),
    "launches": Fact(_part("launch-bound"), "launch-bound part"),
    "data": Fact(_part("data wait"), "data wait"),
    "copies": Fact(_part("copies"), "copies"),
    "sync": Fact(_part("sync"), "sync"),
    "bound": Fact(_field("cause", _bound), "bound"),
    "roof": Fact(
        _field("roofline.fraction.value", lambda share: f"{percent_of_roof(share)} %"),
        "share of the roof",
    ),
    "intensity": Fact(
        _field("roofline.flops_per_byte", "{:.3g} FLOP/byte".format), "FLOP per byte"
    ),
    "rate": Fact(_rate("flops_per_s", "FLOP/s"), "FLOP/s"),
    "bandwidth": Fact(_rate("bytes_per_s", "B/s"), "bandwidth"),
    "items": Fact(_items, "items per second"),
    "peak": Fact(_field("memory.peak_bytes", byte_count), "peak memory"),
    "held": Fact(_field("memory.held_bytes", byte_count), "memory held between steps"),
    "reserved": Fact(_field("memory.reserved_bytes", byte_count), "reserved memory"),
    "sm": Fact(_solo("sm", "%"), "SM activity"),
    "dram": Fact(_solo("dram", "%"), "DRAM activity"),
    "busy": Fact(_solo("busy", "%"), "utilization"),
    "power": Fact(_solo("power", "W"), "power"),
    "returns": Fact(_clock(Clock.RETURN), "time until the call returns"),
    "waits": Fact(_clock(Clock.STEP), "time with a wait after each step"),
    "device": Fact(_clock(Clock.DEVICE), "time by the device's clock"),
    "error": Fact(_field("error", "{:.1e}".format), "error"),
    "status": Fact(_status, "status"),
}


def answer(template: str, report: RunReport) -> str:
    """The answer with what the run measured in its places.

    A sentence or parenthesis of which something was not measured is left out, and one sentence says
    what that is, and why.
    """
    missing: list[tuple[str, str, str]] = []

    def filled(part: str) -> str | None:
        holes = len(missing)
        text = PLACE.sub(lambda match: _fill(match, report, missing), part)
        return text if len(missing) == holes else None

    sentences = []
    place = None
    for sentence_of in SENTENCE_END.split(template):
        whole = PARENTHESIS.sub(lambda match: filled(match[0]) or "", sentence_of)
        text = filled(whole)
        if text is not None:
            sentences.append(text)
        elif place is None:
            place = len(sentences)
    if missing:
        sentences.insert(len(sentences) if place is None else place, _not_measured(missing))
    return " ".join(sentences)


def _fill(match: re.Match[str], report: RunReport, missing: list[tuple[str, str, str]]) -> str:
    """The text of a place; empty where there is none, and then what, of which variant, and why is
    added to what is missing.
    """
    name, fact, figure = match.group("variant", "fact", "figure")
    variant = next((variant for variant in report.variants if variant.name == name), None)
    text = None
    if figure is not None:
        for entry in report.figures:
            if entry.variant == name and entry.name == figure:
                text = f"{entry.value:.4g}"
    elif variant is not None:
        text = FACTS[fact].text(report, variant)
    if text is not None:
        return text
    words = figure or FACTS[fact].words
    if variant is None:
        missing.append(("", name, "not in this run"))
    elif variant.status not in (Status.OK, Status.PENDING):
        missing.append(("", name, f"{variant.status}: {_status(report, variant)}"))
    elif report.outcome == Conclusion.INTERRUPTED:
        missing.append((words, name, "the run was stopped before that"))
    elif report.outcome == Conclusion.FAILED:
        missing.append((words, name, "the run failed before that"))
    else:
        missing.append((words, name, ""))
    return ""


def _not_measured(missing: Sequence[tuple[str, str, str]]) -> str:
    """One sentence on what was not measured, each reason once, where there is one."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for words, name, reason in dict.fromkeys(missing):
        reasons.setdefault(reason, {}).setdefault(words, []).append(name)
    parts = []
    for reason, names_by_words in reasons.items():
        things = []
        for words, names in names_by_words.items():
            listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
            things.append(f"{words} of {listed}" if words else listed)
        parts.append(f"{', '.join(things)} ({reason})".removesuffix(" ()"))
    return f"Not measured here: {'; '.join(parts)}."


def course_page(stages: Sequence[CourseStage], rows: Mapping[str, ScenarioRow]) -> list[Block]:
    """The whole path, `rows` being the lessons by name: what to look at in each, and what to ask of
    it.
    """
    parts: list[Block] = []
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


def lesson_page(lesson: CourseLesson, report: RunReport | None) -> list[Block]:
    """One lesson of the course: its questions, with the answers of a run if there is one."""
    questions = [_indented(line) for line in _questions(lesson, report)]
    return [Text(lesson.name, "bold"), _indented(f"Look at: {lesson.look}"), "", *questions]


def lesson_questions(lesson: CourseLesson, *, answers: bool) -> Block:
    """Return what to look at in a lesson, and its questions, with as much of their answers as is
    known before a run.
    """
    return Fitted(lambda width: _before_a_run(lesson, min(width, _WIDEST), answers=answers))


def _before_a_run(lesson: CourseLesson, width: int, *, answers: bool) -> Iterator[Block]:
    yield _indented(f"Look at: {lesson.look}", width=width)
    yield ""
    when = "; the result of a run has the answers with its figures" if answers else ""
    yield Text(f"questions{when}", "bold")
    for number, question in enumerate(lesson.questions, 1):
        yield _indented(f"{number}. {question.ask}", width=width)
        if answers:
            yield Inside(Text(_without_figures(question.answer)), left=3)
    if not answers:
        yield Text("a shows the answers", "dim")


def _without_figures(template: str) -> str:
    """The sentences of an answer that need nothing measured."""
    sentences = SENTENCE_END.split(PARENTHESIS.sub("", template))
    known = [text for text in sentences if not PLACE.search(text)]
    return " ".join(known) or "A run answers it."


def questions_of(report: RunReport, width: int) -> list[Block]:
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


def _indented(text: str, cells: int = 0, width: int = _WIDEST) -> Text:
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
