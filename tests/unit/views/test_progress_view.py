"""A run under way: where it is, the table so far, and the last lines that were printed."""

import pytest
from conftest import printed
from run_reports import CPU, run, two_variants, variant

from gpulab.core.statuses import Conclusion, Stage, Status
from gpulab.core.units import times
from gpulab.features.live.progress import headline, one_line, progress_view, stage
from gpulab.report.report import LogReport, Progress
from gpulab.stats.comparison import Comparison

MEASURING = Progress(stage=Stage.MEASURE, epoch=3, planned_epochs=20, rounds=12, elapsed_s=4.4)


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress(stage=Stage.BUILD, variant="two"), "build two"),
        (Progress(stage=Stage.CEILINGS, detail="cache read 1 MiB"), "ceilings cache read 1 MiB"),
        (Progress(stage=Stage.MEASURE), "measure"),
        (Progress(stage=Stage.SOLO_RUN, variant="two"), "solo run two"),
        (MEASURING, "epoch 3 (of 20 or more), round 12"),
    ],
)
def test_the_stage_says_what_is_going_on(progress, text):
    assert stage(run(progress=progress)) == text


def test_the_headline_says_since_when():
    assert headline(run(progress=MEASURING)) == "scenario · epoch 3 (of 20 or more), round 12 · 4 s"
    assert headline(run(scenario="", progress=Progress())) == "starting"


def test_a_log_that_cannot_be_redrawn_has_the_times_in_a_line():
    line = one_line(two_variants(outcome=Conclusion.UNDER_WAY, progress=MEASURING))
    assert line == (
        "scenario · epoch 3 (of 20 or more), round 12 · 4 s, old 1.00 ms ±1.0%, new 1.00 ms ±1.0%"
    )
    building = run(
        variant("old"), progress=Progress(stage=Stage.BUILD, variant="old", elapsed_s=1.0)
    )
    assert one_line(building) == "scenario · build old · 1 s"


def test_the_view_has_the_table_the_claim_and_the_last_printed_lines():
    log = LogReport(head=[f"line {number}" for number in range(9)])
    report = two_variants(
        outcome=Conclusion.UNDER_WAY, progress=MEASURING, claim="2x", log=log, device=CPU
    )
    lines = [line.rstrip() for line in printed(progress_view(report)).splitlines()]
    assert lines[0] == headline(report)
    assert any(line.endswith("so far") for line in lines)
    assert "claim: 2x; measured here: new 1.50x (faster so far)" in lines
    assert lines[-3:] == ["  line 6", "  line 7", "  line 8"]


def test_a_run_that_has_only_started_has_its_rows():
    pending = variant("old", status=Status.PENDING, time_s=None)
    report = run(pending, outcome=Conclusion.UNDER_WAY, progress=Progress(stage=Stage.LOAD))
    text = printed(progress_view(report))
    assert "scenario · load · 0 s" in text
    assert any(line.split()[:1] == ["old"] for line in text.splitlines())


def test_before_there_is_an_interval_a_speedup_is_preliminary():
    report = two_variants(
        outcome=Conclusion.UNDER_WAY,
        progress=MEASURING,
        comparisons=[Comparison(variant="new", against="old")],
    )
    old, new = (variant.time_per_item.median for variant in report.variants)
    assert f"about {times(old / new)}" in one_line(report)
    assert f"about {times(old / new)}" in printed(progress_view(report))
