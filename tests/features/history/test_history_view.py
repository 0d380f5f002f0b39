"""The list of past runs: columns in any width, what one may look for, and the runs around the
chosen one.
"""

from datetime import UTC, datetime, timedelta

import pytest

from gpulab.catalog.view import last_run
from gpulab.core.machine import Device
from gpulab.core.statuses import Conclusion, ExitCode
from gpulab.features.history import view as history
from gpulab.report.past import PastComparison, PastRun
from gpulab.scenario import Scenario

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def past(number=0, speedup=1.5, verdict="faster", **changes):
    """A run of so many hours ago; without a speedup one that was interrupted."""
    comparison = {"verdict": verdict, "speedup": speedup, "low": speedup and speedup * 0.9}
    usual = {
        "at": (NOW - timedelta(hours=number)).isoformat(),
        "host": "here",
        "run_file": f"/runs/{number}.jsonl",
        "scenario": "batched_matmul",
        "path": "batched_matmul.py",
        "source_sha256": "ab" * 32,
        "device": Device(kind="cuda", name="NVIDIA H100 80GB HBM3"),
        "outcome": Conclusion.MEASURED if speedup else Conclusion.INTERRUPTED,
        "exit_code": ExitCode.MEASURED if speedup else ExitCode.INTERRUPTED,
        "comparisons": (
            PastComparison(
                variant="bmm", against="loop", high=speedup and speedup * 1.1, **comparison
            ),
        ),
    }
    return PastRun(**{**usual, **changes})


@pytest.mark.parametrize("width", [58, 77, 117])
def test_every_line_has_its_columns_and_what_is_cut_has_a_mark(width):
    name = history.name_width(24, width)
    head = history.columns(width, name).plain
    runs = [
        past(),
        past(3, None),
        past(9, 0.98),
        past(9, 0.98, verdict="inconclusive"),
        past(9, 1.2, exit_code=ExitCode.SLOWER, fail_below=1.5),
        past(9, 1.2, exit_code=ExitCode.INCONCLUSIVE, fail_below=1.2),
        past(scenario="µ" * 40, device=Device(kind="cpu", name="x" * 90)),
    ]
    for run in runs:
        text = history.line(run, NOW, width, name).plain
        assert len(text) <= width
        assert text[head.index("lesson") - 2 : head.index("lesson")] == "  "
        assert text[head.index("verdict") - 1] == " "
        interval = text[head.index("interval") - 1 : head.index("interval") + 1]
        assert interval[0] == " " != interval[1] or not run.comparisons[0].low
        assert len(text) < width or text.endswith(("…", "HBM3"))
    assert "…" in history.line(runs[-1], NOW, width, name).plain[:50]


def test_the_name_of_a_device_is_there_as_a_whole_where_it_has_room():
    assert history.line(past(), NOW, 117).plain.endswith("NVIDIA H100 80GB HBM3")
    assert history.line(past(), NOW, 87).plain.endswith(" H100 80GB HBM3")


def test_a_missed_threshold_is_a_sign_beside_the_verdict_and_words_below():
    """It said slower, in red, of a variant that was 1.2 times as fast."""
    run = past(0, 1.2, exit_code=ExitCode.SLOWER, fail_below=1.5)
    drawn = history.line(run, NOW, 117)
    assert " 1.20x faster      < 1.080 to 1.320 " in drawn.plain
    assert not any("red" in str(span.style) for span in drawn.spans)
    assert history.facts(run).startswith("< below the required 1.50x · bmm 1.20x over loop")
    assert "<" not in history.facts(past())


def test_runs_without_a_speedup_say_why_in_the_column_of_verdicts():
    """A run that was inconclusive in its result was *done* here."""
    verdict = history.columns(98, 24).plain.index("verdict")
    for run, word in (
        (past(smoke=True), "smoke"),
        (past(comparisons=()), "timed"),
        (past(comparisons=(), quick=True), "timed*"),
        (past(0, None, "inconclusive", exit_code=ExitCode.MEASURED), "inconclusive"),
        (past(0, None), "stopped"),
    ):
        assert history.line(run, NOW, 98).plain[verdict:].split()[0] == word
    assert last_run(past(smoke=True)) == "smoke"


def test_a_line_has_the_parameters_that_differ_from_the_defaults_where_there_is_room():
    scenario = Scenario("x", params={"n": 8, "m": 2}, cpu={"m": 1}, smoke={"n": 1})
    run = past(params={"n": 4096, "m": 2})
    assert history.differing(run, scenario) == "n=4096"
    on_cpu = past(params={"n": 8, "m": 2}, device=Device(kind="cpu", name="x" * 90))
    assert history.differing(on_cpu, scenario) == "m=2"
    assert history.line(run, NOW, 98, 14, "n=4096").plain.endswith("NVIDIA H100 80GB HBM3  n=4096")
    assert history.line(on_cpu, NOW, 98, 32, "m=2").plain.endswith("x…  m=2")
    assert history.line(run, NOW, 97, 14, "n=4096").plain.endswith("HBM3")


def test_what_one_may_look_for():
    text = history.search_text(past(title="Batched: one Call", params={"n": 4096}))
    assert all(
        word in text
        for word in ("batched_matmul", "one call", "faster", "h100", "2026-11-22", "here", "n=4096")
    )


@pytest.mark.parametrize("place", [0, 1, 30, 58, 59])
def test_the_chosen_run_is_among_those_around_it(place):
    runs = [past(60 - number, 1.5 + number / 100) for number in range(60)]
    rows = history.others_on_one_axis(runs, runs[place], width=80, height=9).plain.split("\n")
    assert "its 60 runs here" in rows[0]
    assert sum(row.startswith(">") for row in rows) == 1
    assert len(rows) == 9
    assert ("newer" in rows[0].replace("the newest last", "")) == (place < 56)


def test_a_run_without_a_speedup_stands_among_the_others():
    runs = [past(3, 1.5), past(2, None), past(1, 1.6)]
    rows = history.others_on_one_axis(runs, runs[1], width=80, height=9).plain.split("\n")
    assert sum("●" in row for row in rows) == 2
    assert rows[1].startswith("bmm")
    alone = history.others_on_one_axis(runs[1:2], runs[1], width=80, height=9).plain
    assert "no speedup with an interval" in alone


def test_facts_have_no_holes():
    assert (
        history.facts(past(rounds=1))
        == "bmm 1.50x over loop · torch ? · 0 s · 1 round · /runs/0.jsonl"
    )


def test_what_lies_outside_stands_between_the_runs_with_what_the_environment_did():
    runs = [past(40 - number, 1.5) for number in range(20)]
    runs += [past(20, 1.1), past(19, 1.5)]
    rows = history.others_on_one_axis(runs, runs[-1], width=80, height=9).plain.split("\n")
    place = next(place for place, row in enumerate(rows) if "outside 1.350 to 1.650" in row)
    assert "1.650: same versions" in rows[place]
    assert rows[place + 1].lstrip("> ").startswith(runs[20].at[5:10])
    runs = [past(40 - number, 1.5, environment={"driver": "570"}) for number in range(9)]
    runs += [past(20 - number, 1.0, environment={"driver": "580"}) for number in range(3)]
    drawn = history.others_on_one_axis(runs, runs[-1], width=80, height=9).plain
    assert drawn.count("driver 570 → 580") == 1
