"""Whatever the texts of a report hold: no view drives a terminal by them, or lets them begin a line
of their own.
"""

import unicodedata
from datetime import UTC, datetime

import pytest
from conftest import printed
from found import finding
from hostile import CLOCKS, DECODED, EACH_RECORDING, FORGED, KNOWN, hostile
from msgspec.structs import replace
from recorded import report_of, run_file

from gpulab.catalog import view as lesson
from gpulab.catalog import view as listing
from gpulab.catalog.catalog import ScenarioRow
from gpulab.core.machine import CheckStatus, Device, MachineCheck
from gpulab.core.payloads import KernelCode, KernelText, Tried, Tuning
from gpulab.core.readable import readable
from gpulab.core.run_file import read_run_file
from gpulab.core.statuses import Conclusion, ExitCode, Shows
from gpulab.draw.blocks import Group
from gpulab.features.code import view as code
from gpulab.features.code import view as machine_code
from gpulab.features.compare.analysis import SavedRun, compare_sides
from gpulab.features.compare.view import comparison_view
from gpulab.features.course import view as course
from gpulab.features.course.report import CourseLesson, CourseStage, Question
from gpulab.features.doctor import view as doctor
from gpulab.features.history import view as history
from gpulab.features.history.trend import trend_around
from gpulab.features.kernels.differences import Change, KernelDifference
from gpulab.features.kernels.view import kernel_page, kernels
from gpulab.features.live import progress
from gpulab.features.live.screen import ZOOMED, live_view
from gpulab.features.memory.result import MemoryReport
from gpulab.features.memory.view import memory_over
from gpulab.features.predictions import view as predict
from gpulab.features.predictions.report import Prediction
from gpulab.features.repeats import view as over_runs
from gpulab.features.repeats.report import repeat_reports
from gpulab.features.roofline.report import roofline_of
from gpulab.features.roofline.view import ceilings, limits, reasons, roofline_view
from gpulab.features.sweeps import view as sweep
from gpulab.features.sweeps.report import sweep_of
from gpulab.features.tuning.view import tunings
from gpulab.guide.help import help_view
from gpulab.headless import run as summary
from gpulab.report.build import build_report, fold_all
from gpulab.report.live import LiveDetail, LiveReport
from gpulab.report.past import PastComparison, PastRun
from gpulab.show.markdown import comparison as comparison_markdown
from gpulab.show.markdown import of
from gpulab.show.parts import Shown, Target, on_screen, result
from gpulab.show.short_result import short_result
from gpulab.show.view import comparison_table, failures
from gpulab.tui import status
from gpulab.tui.panels import log

ROW = ScenarioRow(
    name="name",
    topic="topic",
    title="title",
    lesson="heading\n\nparagraph\n\n    code",
    claim="claim",
    path="path",
    variants=("first", "second"),
    summaries=("one", "two"),
    params={"n": 3, "name": "value"},
    cpu={"name": "value"},
    sweep={"name": ("value",)},
    missing=finding("not_installed", package="package", install="install"),
)
ROWS = [
    ROW,
    ScenarioRow(name="broken", path="path", error="error"),
    ScenarioRow(name="own", own=True, function=True),
]
QUESTION = Question("question", "answer {first.time} {first: figure}")
COURSE = CourseStage("stage", "text", (CourseLesson("name", "look", (QUESTION,)),))
CHECKS = [
    MachineCheck(name="name", status=CheckStatus.OK, result=finding("file", path="path")),
    MachineCheck(
        name="name",
        status=CheckStatus.BROKEN,
        result=finding("probe_failed", message="m"),
        fix=finding("run_command"),
    ),
]


def of_report(report):
    """Every view of a report, by its name."""
    roofline = roofline_of(report)
    parameter = next(iter(report.params), "")
    yield "result", result(Shown(report, Target.TERMINAL))
    yield "short result", short_result(report)
    yield "raw table", "\n".join(of(comparison_table(report)))
    yield "failures", failures(report)
    yield "log", log.log(report)
    for line in course.lesson_page(COURSE.lessons[0], report):
        yield "lesson_page", line
    yield (
        "progress_view",
        progress.progress_view(LiveReport(report, LiveDetail()), width=80, height=20),
    )
    yield "one_line", progress.one_line(report)
    yield "run_line", summary.run_line(report, 1, 2)
    yield "summary", summary.summary([report, report])
    yield "sweep_view", sweep.sweep_view(sweep_of(parameter, [report]), [report])
    yield "repeats_view", over_runs.repeats_view(repeat_reports([report, report]))
    yield "ceilings", ceilings(report)
    for width, height in ((80, 20), (120, 36)):
        live = LiveReport(report, LiveDetail())
        yield "live_view", live_view(live, width=width, height=height)
    for panel in ZOOMED:
        yield (
            panel.name,
            live_view(live, width=80, height=20, chosen=panel.name, zoomed=True),
        )
    yield "result on a screen", on_screen(Shown(report, Target.SCREEN, width=120, live=live))
    sides = [[SavedRun(report=report, values={}, source=source)] for source in ("a", report.title)]
    compared = compare_sides(report.title, report.title, *sides)
    yield "comparison_view", comparison_view(compared)
    yield "comparison_markdown", comparison_markdown(compared)
    for line in predict.outcome(report, Prediction((1.0, 2.0), "memory")):
        yield "outcome", line
    run = past_of(report)
    for text in history.cells(run, datetime.now(UTC), history.assignments(run.params)):
        yield "cells", text
    yield "facts", history.facts(run)
    if (found := trend_around([run, run], run)) is not None:
        yield "trend_on_axis", history.trend_on_axis(found[0], run.at, width=80, height=9)
    names = [variant.name for variant in report.variants]
    yield "code_view", code.code_view(report.title, names, report)
    yield "kernels", kernels(report) or ""
    yield "tunings", tunings(report) or ""
    name = next(iter(report.params), "")
    yield (
        "memory_over",
        memory_over(name, [of_memory(report, name, 1), of_memory(report, name, 2)]) or "",
    )
    if roofline:
        yield "roofline_view", roofline_view(roofline, width=120, height=30)
        yield "reasons", reasons(roofline.points)
        yield "limits", limits(report.variants)


def with_kernels(report):
    """The same of variants in CUDA C++."""
    difference = KernelDifference(
        against="a", changes=[Change(what="fused_adds", before=1, after=2)]
    )
    made = {
        "kernels": [kernel_code("name")],
        "kernel_difference": difference,
        "tuning": tuning_of("config"),
    }
    return replace(report, variants=[variant.with_parts(**made) for variant in report.variants])


def of_memory(report, parameter, value):
    variants = [
        variant.with_parts(memory=MemoryReport(held_bytes=0, peak_bytes=1024))
        for variant in report.variants
    ]
    return replace(report, variants=variants, shows=Shows.MEMORY, params={parameter: value})


def tuning_of(text):
    second = Tried(config=text, time_s=1e-3, ratio=1.1, low=1.0, high=1.2)
    return Tuning(
        tried=[Tried(config=text, time_s=1e-3), second, Tried(config=text, reason=text)],
        tied=1,
        at=text,
    )


def kernel_code(text):
    texts = dict.fromkeys(("name", "arch", "limiter", "read_from", "digest"), text)
    return KernelCode(
        **texts,
        registers=9,
        threads=32,
        occupancy=0.5,
        instructions={"all": 3, text: 1, f"{text}_32": 2},
    )


def of_kernels(name, source):
    """Every view of kernels that were compiled."""
    text, made = KernelText(name, source, 1), kernel_code(name)
    page = kernel_page({name: [made], "second": [replace(made, instructions={})]}, {"second": name})
    functions = "def first(lab): ...\ndef second(lab): ...\n"
    shown = {"first": [text], "second": [replace(text, code=f"{source};")]}
    listings = {name: [(name, source.splitlines())], "second": [(name, [name, "second"])]}
    yield "kernel_page", page
    yield "code_view", code.code_view(functions, ("first", "second"), None, shown, page)
    yield (
        "machine_code",
        machine_code.machine_code(listings, {"second": name}, (name, "second")),
    )


def past_of(report):
    """A run as the index keeps it."""
    ends = {"measured": 1.0, "low": 0.9, "high": 2.0}
    comparisons = tuple(
        PastComparison(variant=entry.variant, against=entry.against, verdict=entry.verdict, **ends)
        for entry in report.comparisons
    )
    return PastRun(
        at="2026-11-22T10:00:00+00:00",
        host=report.scenario,
        run_file=report.run_file,
        scenario=report.scenario,
        path=report.title,
        source_sha256="",
        params={},
        device=Device(kind="cpu", name=report.scenario, threads=1, memory_bytes=1, l2_bytes=1),
        environment={"torch": report.title},
        outcome=Conclusion.MEASURED,
        exit_code=ExitCode.MEASURED,
        comparisons=comparisons,
    )


def of_machine(rows, checks):
    """Every view of scenarios that have not run, and of a machine."""
    yield "listing", listing.listing(rows)
    for line in course.course_page([COURSE], {row.name: row for row in rows}):
        yield "course_page", line
    for row in rows:
        yield "lesson", lesson.lesson(row)
        yield "code_view", code.code_view(row.lesson, row.variants, None)
        yield from of_kernels(row.title, row.lesson)
        yield "before_a_run", status.before_a_run(row)
        yield "question", Group(*predict.question(row, {}))
        yield (
            "help_view",
            help_view(row.title, row.lesson, [(row.name, row.title)], row.path),
        )
    yield "doctor", doctor.doctor(checks)
    yield "no_roofline", status.no_roofline()


def visible(mark):
    return mark in "\n" or mark.isprintable() or unicodedata.category(mark) == "Zs"


def assert_safe(views):
    """What the views print, by their names."""
    texts = {}
    for name, view in views:
        texts[name] = text = printed(view, width=9999)
        assert all(map(visible, set(text))), name
        assert not [line for line in text.splitlines() if line.strip().startswith(FORGED)], name
    return texts


@pytest.mark.parametrize("known", [KNOWN, pytest.param(CLOCKS, marks=pytest.mark.slow)])
@EACH_RECORDING
def test_no_text_of_a_report_drives_the_terminal_or_forges_a_line(recorded, known, tmp_path):
    report = with_kernels(report_of(recorded, tmp_path))
    views = dict(of_report(readable(hostile(report, known))))
    texts = assert_safe(views.items())
    assert FORGED in texts["result"] + texts["ceilings"]
    assert not report.variants or FORGED in texts["kernels"]


@EACH_RECORDING
def test_a_report_has_no_text_that_could(recorded, tmp_path):
    events = read_run_file(run_file(recorded, tmp_path)).events
    report = build_report(fold_all(hostile(event, KNOWN | DECODED) for event in events))
    assert readable(report) == report


def test_nor_does_a_text_of_a_scenario_or_of_a_machine():
    rows = [readable(hostile(row)) for row in ROWS]
    checks = [readable(hostile(check)) for check in CHECKS]
    views = list(of_machine(rows, checks))
    assert sum(FORGED in printed(view) for _, view in views) >= 6
    assert_safe(views)
