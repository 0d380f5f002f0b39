"""Telemetry: charts beside a run that say when they are stale or lost, and a table of solo runs
that is never cut.
"""

import pytest
from conftest import printed
from found import finding
from recorded import report_of
from run_reports import CPU, run, variant

from gpulab.core.machine import Device
from gpulab.draw.bars import levels
from gpulab.features.live.screen import panel_view
from gpulab.features.telemetry.fields import FIELDS, Field
from gpulab.features.telemetry.result import SoloReport, TelemetryReport
from gpulab.features.telemetry.view import CHARTS, solo_runs
from gpulab.report.live import LiveDetail, LiveRun
from gpulab.report.report import Progress

GPU = Device(kind="cuda", name="NVIDIA H200")
MEANS = {"sm": 97.2, "power": 503.0, "temperature": 48.0}


def rows_of(telemetry, **changes):
    report = run(variant(), device=GPU, telemetry=telemetry, **changes)
    drawn = panel_view(CHARTS, LiveRun(report, LiveDetail(on_gpu=True)), width=80).plain
    return [line.rstrip() for line in drawn.splitlines() if line.strip()]


def of_gpu(**changes):
    usual = {
        "gpu": "NVIDIA H200",
        "readings": 3,
        "recent": {"sm": [0.0, 50.0, 100.0], "dram": [10.0, 12.0, 9.0]},
        "peaks": {"sm": 100.0, "dram": 12.0},
        "last": {
            "sm": 100.0,
            "power": 410.0,
            "sm_clock": 1755.0,
            "temperature": 61.0,
            "memory_used": 3 << 30,
        },
        "limits": {"power": 700.0, "memory_used": 140 << 30},
        "clocks": "ok",
    }
    return TelemetryReport(**{**usual, **changes})


@pytest.mark.parametrize(
    ("clocks", "slowed", "text"),
    [
        ("ok", False, "clocks ok"),
        ("P", False, "clocks P (power cap)"),
        ("PT", True, "clocks PT (thermal slowdown, power cap) (slowed before)"),
        ("ok", True, "clocks ok (slowed before)"),
    ],
)
def test_what_holds_the_clocks_back_is_named(clocks, slowed, text):
    assert rows_of(of_gpu(clocks=clocks, slowed=slowed))[-1] == text


def test_a_stale_reading_says_for_how_long_and_a_lost_gpu_why():
    assert rows_of(of_gpu(stale=True, age_s=4.2))[-1] == "stale: nothing for 4 s"
    lost = rows_of(of_gpu(lost=finding("gpu_lost")))[-1]
    assert lost == "GPU lost: see its Xid line in the kernel log (dmesg)"


def test_before_the_first_reading_it_waits():
    assert "waiting for the driver" in rows_of(None, progress=Progress(awaiting_telemetry=True))
    assert "no reading so far" in rows_of(None)


def test_bars_end_at_fixed_scales():
    assert levels([0, 49.9, 100, 250, -3], 100) == "▁▄██▁"


def solo(**changes):
    return SoloReport(
        **{"seconds": 2.0, "readings": 8, "time_s": 1e-3, "means": MEANS, "clocks": "ok", **changes}
    )


def solo_lines(report, width=80):
    return [line.rstrip() for line in printed(solo_runs(report), width).splitlines()]


def test_clock_letters_are_explained_below_the_table_and_ok_is_not():
    capped, hot = (
        variant("capped", solo_run=solo(clocks="P")),
        variant("hot", solo_run=solo(clocks="TB")),
    )
    lines = solo_lines(run(capped, hot, telemetry=of_gpu()))
    assert lines[-1] == "clocks: B power brake, T thermal slowdown, P power cap"
    assert [line.split()[-1] for line in lines[1:-1]] == ["clocks", "P", "TB"]
    steady = solo_lines(run(variant("steady", solo_run=solo()), telemetry=of_gpu()))
    assert steady[-1].startswith("steady ")


def test_a_field_that_only_some_variants_have_is_na_and_one_that_none_has_has_no_column():
    blank = variant("blank", solo_run=solo(means={"sm": 10.0}, energy_j=None))
    full = variant("full", solo_run=solo(energy_j=0.114))
    title, head, full, partial = solo_lines(run(full, blank, telemetry=of_gpu()))
    assert title == "solo run"
    assert head.split() == ["2", "s", "time/step", "SM", "%", "W", "J/item", "C", "clocks"]
    assert full.split() == ["full", "1.00", "ms", "97.2", "503", "0.114", "48.0", "ok"]
    assert partial.split() == ["blank", "1.00", "ms", "10.0", "n/a", "n/a", "n/a", "ok"]


def test_rates_that_nobody_counted_are_labelled_derived():
    table = solo_lines(
        run(
            variant("v", solo_run=solo(bytes_per_s=3.13e8, flops_per_s=2.67e10)),
            telemetry=of_gpu(unsupported={"sm": "not_supported"}),
        ),
        120,
    )
    assert table[-2].endswith("B/s, derived FLOP/s, derived")
    assert table[-1].endswith("313 M          26.7 G")


@pytest.mark.parametrize(
    "name", ["channels_last-h100-1", "preallocation-h100-1", "optimizer_step-h100-1"]
)
def test_no_figure_of_a_solo_run_is_cut_at_80_columns(name, tmp_path):
    report = report_of(name, tmp_path)
    lines = solo_lines(report)
    assert max(map(len, lines)) <= 80
    head = next(line for line in lines if "time/step" in line)
    assert head.endswith(" clocks")
    states = [line.split()[-1] for line in lines if " µs " in line or " ms " in line]
    assert states == [variant.solo_run.clocks for variant in report.variants if variant.solo_run]


def test_without_a_reading_there_is_no_table():
    assert solo_runs(run(variant("v", solo_run=solo(readings=0)), device=CPU)) is None
    assert solo_runs(run(variant("v"), device=CPU)) is None


def test_heads_of_columns_have_the_unit_of_their_field(monkeypatch):
    monkeypatch.setitem(FIELDS, "power", Field("power", "kW", column=True))
    report = run(variant("v", solo_run=solo(means={"power": 1.0, "sm": 2.0})), telemetry=of_gpu())
    assert "kW" in solo_lines(report)[1].split()
    means = {"worker_cpu": 1.0, "machine_cpu": 1.0, "rss": 1.0, "switches": 1.0, "frequency": 1.0}
    head = solo_lines(run(variant("v", solo_run=solo(means=means))), 120)[1].split()
    assert head[2:] == [
        "time/step",
        "worker",
        "CPU",
        "%",
        "machine",
        "CPU",
        "%",
        "RSS",
        "preempted/s",
        "MHz",
    ]
