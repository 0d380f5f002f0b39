"""A run under way: where it is, the table so far, and the last lines that were printed."""

import pytest
from conftest import printed
from run_reports import CPU, run, two_variants, variant

from gpulab.core.statuses import Conclusion, Stage, Status
from gpulab.core.units import times
from gpulab.features.live.progress import headline, one_line, progress_view, stage
from gpulab.report.live import LiveDetail, LiveRun
from gpulab.report.report import Progress
from gpulab.stats.comparison import Comparison


def view_of(report):
    view = progress_view(LiveRun(report, LiveDetail()), width=80, height=20)
    return [line.rstrip() for line in printed(view).splitlines()]


MEASURING = Progress(stage=Stage.MEASURE, epoch=3, planned_epochs=20, rounds=12, elapsed_s=4.4)


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress(stage=Stage.BUILD, variant="two"), "building two"),
        (
            Progress(stage=Stage.CEILINGS, detail="cache read 1 MiB"),
            "measuring roofs: cache read 1 MiB",
        ),
        (Progress(stage=Stage.MEASURE), "preparing the rounds"),
        (Progress(stage=Stage.SOLO_RUN, variant="two"), "running two alone"),
        (MEASURING, "build 3 (of 20 or more), round 12"),
    ],
)
def test_the_stage_says_what_is_going_on(progress, text):
    assert stage(run(progress=progress)) == text


def test_the_headline_says_since_when():
    assert headline(run(progress=MEASURING)) == "scenario · build 3 (of 20 or more), round 12 · 4 s"
    assert headline(run(scenario="", progress=Progress())) == "starting"


def test_a_log_that_cannot_be_redrawn_has_the_times_in_a_line():
    line = one_line(two_variants(outcome=Conclusion.UNDER_WAY, progress=MEASURING))
    assert line == (
        "scenario · build 3 (of 20 or more), round 12 · 4 s, old 1.00 ms ±1.0%, new 1.00 ms ±1.0%"
    )
    building = run(
        variant("old"), progress=Progress(stage=Stage.BUILD, variant="old", elapsed_s=1.0)
    )
    assert one_line(building) == "scenario · building old · 1 s"


def test_the_view_has_the_headline_and_the_panels():
    report = two_variants(outcome=Conclusion.UNDER_WAY, progress=MEASURING, claim="2x", device=CPU)
    lines = view_of(report)
    assert lines[0] == headline(report)
    assert any(line.endswith("1.50x faster") for line in lines)
    assert len(lines) <= 20


def test_a_run_that_has_only_started_has_its_rows():
    pending = variant("old", status=Status.PENDING, time_s=None)
    report = run(pending, outcome=Conclusion.UNDER_WAY, progress=Progress(stage=Stage.LOAD))
    lines = view_of(report)
    assert lines[0] == "scenario · reading the scenario · 0 s"
    assert any(line.split()[:1] == ["old"] for line in lines)


def test_before_there_is_an_interval_a_speedup_is_preliminary():
    report = two_variants(
        outcome=Conclusion.UNDER_WAY,
        progress=MEASURING,
        comparisons=[Comparison(variant="new", against="old")],
    )
    old, new = (variant.time_per_item.median for variant in report.variants)
    assert f"about {times(old / new)}" in one_line(report)
    assert any(f"about {times(old / new)}" in line for line in view_of(report))
