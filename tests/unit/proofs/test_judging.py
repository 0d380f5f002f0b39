"""What verify.py says of figures: bounds on both sides, claims of sources, sustained speedups, the
host apart.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import claims
import device_lines
import msgspec
import pytest
import trust_lines
import verify
from judging import (
    Bounds,
    Judgement,
    Row,
    failed,
    heads_where_it_differs,
    split_ceilings,
    table,
    within,
)
from recorded import report_of

SCENARIOS = Path(__file__).parents[3] / "scenarios"


def as_json(report):
    return msgspec.to_builtins(report)


def test_bounds_have_two_sides():
    bounds = Bounds(1.0, 2.0)
    assert [bounds.judge(value) for value in (0.9, 1.0, 2.0, 2.1)] == [
        "short",
        "within",
        "within",
        "over",
    ]
    assert within("busy", Bounds(0.9, 1.0), 1.2, "%") == Row(
        "busy", "90.0 to 100.0 %", "120.0 %", Judgement.NO
    )


def test_every_lesson_that_claims_a_speedup_has_bounds():
    """All that ship but those which compare nothing."""
    lessons = {path.stem for path in SCENARIOS.glob("*.py")}
    assert lessons - claims.CLAIMS.keys() == {
        "roofline_tour",
        "roofline_walk",
        "cold_start",
        "timing_without_sync",
    }
    assert claims.CLAIMS.keys() <= lessons
    for entries in claims.CLAIMS.values():
        for claim in entries:
            assert 0 < claim.accepted.low < claim.accepted.high < float("inf")


def lesson(scenario, claim="", **speedups):
    base = {"variant": "x", "against": "other", "speedup": 9.0}
    return {
        "scenario": scenario,
        "claim": claim,
        "variants": [{"name": "base"}],
        "comparisons": [
            base,
            *({"variant": n, "against": "base", "speedup": s} for n, s in speedups.items()),
        ],
    }


@pytest.mark.parametrize(
    ("speedup", "judgement"), [(3.47, "short"), (11.5, "within"), (31.0, "over")]
)
def test_a_claim_is_held_to_its_numbers(speedup, judgement):
    """An H100's 3.47x is no 11 to 12x."""
    run = lesson(
        "batch_size", "11-12x in throughput from 32 to 512 rows", batch_512=speedup, batch_2048=40.0
    )
    (entry,) = claims.rows_of(run)
    assert (entry.judgement, entry.expected) == (judgement, "10x to 13x")
    assert entry.measured == f"{speedup:.3g}x; source: 11-12x in throughput from 32 to 512 rows"
    assert bool(list(claims.sentences(run))) == (judgement != "within")


def test_the_best_of_a_lesson_and_a_claim_without_a_speedup():
    (entry,) = claims.rows_of(lesson("cache_footprint", eighth=0.8, half=1.5))
    assert (entry.title, entry.judgement) == ("cache_footprint half", "within")
    (entry,) = claims.rows_of(lesson("batched_matmul"))
    assert entry.judgement == Judgement.NOT_RUN
    assert list(claims.rows_of(lesson("of somebody else"))) == []


def test_claims_of_recorded_runs(tmp_path):
    """A recorded H100 bears out forty launches in one, and what is said of channels last."""
    (matmul,) = claims.rows_of(as_json(report_of("batched_matmul-h100-1", tmp_path)))
    assert matmul.judgement == "within"
    (channels,) = claims.rows_of(as_json(report_of("channels_last-h100-1", tmp_path)))
    assert channels.judgement == "within"
    (allocation,) = claims.rows_of(as_json(report_of("preallocation-h100-1", tmp_path)))
    assert allocation.judgement == "short"


def compared(speedup, low, high, sustained=None, heads=None):
    shown = (
        None
        if sustained is None
        else {"speedup": sustained, "low": None, "high": None, "heads": heads}
    )
    return {"variant": "v", "speedup": speedup, "low": low, "high": high, "sustained": shown}


@pytest.mark.parametrize(
    ("comparison", "fine"),
    [
        (compared(7.8, 7.7, 7.9, 6.9, {"code": "power_cap_alone"}), True),
        (compared(7.8, 7.7, 7.9, 6.9), False),
        (compared(7.8, 7.7, 7.9, 7.75), True),
        (compared(7.8, 6.0, 9.0, 6.9), True),
        (compared(7.8, 7.79, 7.81, 7.7), True),
        (compared(7.8, 7.7, 7.9), False),
    ],
)
def test_a_sustained_speedup_comes_first_where_it_is_another(comparison, fine):
    assert heads_where_it_differs(comparison) == fine


def test_a_recorded_power_cap_heads_its_result(tmp_path):
    rows = list(trust_lines.power_cap_rows(as_json(report_of("precision-h100-1", tmp_path))))
    assert len(rows) >= 4
    assert {row.judgement for row in rows} == {"yes"}
    assert any("power_cap_alone, clocks" in row.measured for row in rows)


def test_what_the_host_takes_to_queue_is_apart_from_the_device():
    first = {
        ("launch", "enqueue", "m"): 4e-6,
        ("device memory", "copy", "m"): 3e12,
        ("host to device", "x", "m"): 1e9,
    }
    second = {
        ("launch", "enqueue", "m"): 5e-6,
        ("device memory", "copy", "m"): 3.03e12,
        ("matrix", "bf16", "m"): 1.0,
    }
    device, host = split_ceilings(first, second)
    assert device == pytest.approx({("device memory", "copy", "m"): 0.01})
    assert host == pytest.approx({("launch", "enqueue", "m"): 0.25})


def variant(name, time_s, alone_s, means=(), **more):
    solo_run = {"time_s": alone_s, "means": dict(means), "clocks": "ok"}
    return {"name": name, "time_s": {"median": time_s}, "solo_run": solo_run, **more}


def test_alone_and_interleaved():
    report = {"variants": [variant("small", 20e-6, 20.3e-6), variant("twin", 22.5e-6, 18e-6)]}
    small, twin = trust_lines.alone_rows(report, ("small", "twin"))
    assert (small.judgement, twin.judgement) == ("yes", "NO")
    assert twin.measured == "18.0 us alone, 22.5 us: 0.800"


def test_busy_is_of_the_time_that_it_was_read_in():
    """The loop of launches took 100 us among others and 80 alone, when the counter was read: 50 us
    of it were busy.
    """
    product = variant("product", 1e-3, 1e-3, {"tensor": 50.0, "sm_clock": 1000.0}, flops=2.5e11)
    copy = variant("copy", 1e-3, 1e-3, {"dram": 80.0, "memory_clock": 1000.0}, bytes=2e8)
    loop = variant(
        "launches",
        100e-6,
        80e-6,
        {"busy": 62.0, "sm": 1.0},
        clocks={"device": 50e-6, "wall": 100e-6},
    )
    spin = variant("spin", 1e-3, 1e-3, {"busy": 99.0, "sm": 0.8})
    rows = {
        entry.title: entry
        for entry in device_lines.counter_rows({"variants": [product, copy, loop, spin]}, 122, 1000)
    }
    assert rows["busy of a loop of launches, of its solo run"].expected == "52.5 to 72.5 %"
    assert {entry.judgement for entry in rows.values()} == {"yes"}


def test_same_against_same():
    entry = {"verdict": "same", "speedup": 1.0, "low": 0.99, "high": 1.01}
    entries = [
        {**entry, "variant": "twin"},
        {**entry, "variant": "unlike", "verdict": "faster"},
        {**entry, "variant": "compiled_twin", "verdict": "inconclusive", "high": 1.2},
        {**entry, "variant": "slower", "verdict": "inconclusive"},
    ]
    report = {"control": {**entry, "verdict": "faster", "low": None}, "comparisons": entries}
    rows = {
        row.title.rpartition(" ")[2]: row.judgement
        for row in trust_lines.same_rows(report, "memory")
    }
    assert rows == {"control": "NO", "twin": "yes", "compiled_twin": "NO", "slower": "NO"}


def test_side_streams():
    joined = {"name": "joined", "status": "ok", "reason": None}
    not_joined = {
        "name": "not_joined",
        "status": "invalid",
        "reason": {"code": "work_beside_the_stream"},
    }
    rows = list(trust_lines.side_stream_rows({"variants": [joined, not_joined]}))
    assert [row.judgement for row in rows] == ["yes", "yes"]
    rows = list(
        trust_lines.side_stream_rows({"variants": [joined, {**not_joined, "status": "ok"}]})
    )
    assert [row.judgement for row in rows] == ["yes", "NO"]


@pytest.mark.parametrize(
    ("entry", "judgement"),
    [
        ({"goodput": 0.52, "reliable": True}, "yes"),
        ({"goodput": 0.26, "reliable": True}, "NO"),
        ({"goodput": 0.26, "reliable": False}, "yes"),
        ({"goodput": None, "reliable": None}, "NO"),
        (None, "NO"),
    ],
)
def test_goodput_is_within_five_points_or_says_that_it_is_not(entry, judgement):
    assert trust_lines.goodput_row("t", 0.55, entry).judgement == judgement


def test_the_table_counts_what_is_the_labs():
    rows = [
        Row("a", "", "", Judgement(name))
        for name in ("yes", "NO", "short", "over", "within", "not run")
    ]
    assert len(failed(rows)) == 2
    assert list(table(rows))[-1].startswith("1 hold, 2 do not or were not run; 3 claims")


def test_a_line_keeps_what_it_has_when_it_fails(tmp_path, capsys):
    def failing(place):
        yield Row("kept", "", "", Judgement.YES)
        raise ValueError("boom")

    verify.run_line(verify.Line(failing, 9), SimpleNamespace(folder=tmp_path))
    rows = verify.rows_of(tmp_path / "rows.jsonl")
    assert [(entry.title, entry.judgement, entry.line) for entry in rows] == [
        ("kept", "yes", "failing"),
        ("failing", "NO", "failing"),
    ]
    assert rows[1].measured == "ValueError: boom"
    assert "kept" in capsys.readouterr().out


def test_what_the_budget_or_the_device_leaves_out_is_a_row(tmp_path, capsys):
    options = SimpleNamespace(folder=tmp_path, device="cpu", budget_s=0.0)
    rows = verify.run_lines([verify.LINES["goodput"], verify.LINES["stages"]], options)
    assert [(entry.title, entry.measured, entry.judgement) for entry in rows] == [
        ("goodput", "none here", "not run"),
        ("stages", "the budget of 0 s is spent", "not run"),
    ]


def test_rows_are_lines_of_json(tmp_path, capsys):
    verify.keep(tmp_path / "rows.jsonl", Row("t", "e", "m", Judgement.OVER, "line"))
    assert json.loads((tmp_path / "rows.jsonl").read_text())["judgement"] == "over"
