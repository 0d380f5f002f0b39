"""`--sweep`: one run a value, a table, a chart, the best marked, and the same in the JSON."""

import signal

import pytest
from scripted import SCENARIO, CommandLine

from gpulab.features.sweeps.runs import SweepRuns


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    lab.write("swept.py", SCENARIO)
    return CommandLine(lab, monkeypatch, capsys)


def test_every_value_is_one_run_and_the_best_is_marked(lab, gpulab):
    process = gpulab(
        "--run",
        "swept.py",
        "--json",
        "out.json",
        "--output",
        "runs",
        "--telemetry",
        "off",
        "--sweep",
    )
    assert process.code == 0
    assert [run["params"]["n"] for run in process.result["runs"]] == [64, 4096]
    (sweep,) = process.result["sweeps"]
    assert (sweep["scenario"], sweep["parameter"]) == ("swept", "n")
    assert sweep["best"] == {"before": 64, "after": 64}
    assert sweep["best_among"] == {"before": [64], "after": [64]}
    assert sweep["paired"] == {"before": True, "after": True}
    files = ["swept-final-n.jsonl", "swept-n-4096.jsonl", "swept-n-64.jsonl"]
    assert sorted(file.name for file in (lab.folder / "runs").iterdir()) == files
    # in the table and in a line, for each variant
    assert process.stdout.count(" best") == 4
    assert "(2 of 2)" in process.stderr
    assert "swept final: 4 points in turn" in process.stderr


def test_the_best_points_take_turns_in_one_run_that_decides(gpulab):
    process = gpulab(
        "--run", "swept.py", "--json", "out.json", "--telemetry", "off", "--sweep", "n=64,65,4096"
    )
    (sweep,) = process.result["sweeps"]
    final = sweep["final"]
    names = ["before n=64", "before n=65", "after n=64", "after n=65"]
    assert [contender["name"] for contender in sweep["contenders"]] == names
    assert [variant["name"] for variant in final["variants"]] == names
    pairs = [(comparison["variant"], comparison["against"]) for comparison in final["comparisons"]]
    assert pairs == [("before n=65", "before n=64"), ("after n=65", "after n=64")]
    assert final["comparisons"][0]["speedup"]["value"] == pytest.approx(64 / 65, rel=1e-3)
    assert (final["params"]["n"], final["outcome"], final["run_file"] != "") == (
        64,
        "measured",
        True,
    )
    assert {comparison["verdict"] for comparison in final["comparisons"]} <= {
        "slower",
        "same",
        "inconclusive",
    }
    assert "before: n=64 is the best, 1.016x" in process.stdout


@pytest.mark.slow
def test_ctrl_c_in_the_final_keeps_the_points(gpulab, monkeypatch):
    announce = SweepRuns.announcement.fget

    def announcement(scenario):
        signal.raise_signal(signal.SIGINT)
        return announce(scenario)

    monkeypatch.setattr(SweepRuns, "announcement", property(announcement))
    process = gpulab(
        "--run", "swept.py", "--json", "out.json", "--telemetry", "off", "--sweep", "n"
    )
    assert process.code == 130
    assert [run["outcome"] for run in process.result["runs"]] == ["measured", "measured"]
    (sweep,) = process.result["sweeps"]
    assert (sweep["best"], sweep["final"]["outcome"]) == (
        {"before": 64, "after": 64},
        "interrupted",
    )


@pytest.mark.slow
def test_a_smoke_run_has_no_final(gpulab):
    process = gpulab(
        "--run",
        "swept.py",
        "--json",
        "out.json",
        "--telemetry",
        "off",
        "--smoke",
        "--sweep",
        "n=64,4096",
    )
    assert process.code == 0
    assert process.result["sweeps"][0]["final"] is None


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ("m", "has no sweep of it (its own: n); write --sweep m=a,b,c"),
        ("m=", "it has no values"),
        ("q=1,2", "has no parameter 'q'; its parameters: n=100, m='x'"),
        ("n=1,x", "n takes a whole number"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused_before_anything_runs(gpulab, sweep, message):
    process = gpulab("--run", "swept.py", "--sweep", sweep)
    assert process.code == 2
    assert message in process.stderr
    assert "(1 of" not in process.stderr


def test_a_broken_file_is_reported_with_its_line(lab, gpulab):
    lab.write("broken.py", "from gpulab import Scenario\nx =")
    process = gpulab("--run", "broken.py", "--sweep", "n=1,2")
    assert process.code == 3
    assert "line 2: syntax error" in process.stdout


def test_a_value_is_set_or_swept(gpulab):
    process = gpulab("--run", "swept.py", "--set", "n=3", "--sweep", "n=1,2")
    assert process.code == 2
    assert "one or the other" in process.stderr


@pytest.mark.slow
def test_a_point_that_fails_leaves_the_others(gpulab):
    options = ("--telemetry", "off", "--json", "out.json", "--set", "fails_at=64")
    process = gpulab("--run", "swept.py", *options, "--sweep", "n=64,128,256")
    assert process.code == 3
    assert "n=64: failed: AssertionError: no (after, build, line 7)" in process.stdout
    assert "after n=256" in process.stdout
    assert "Traceback (most recent call last)" in process.stderr
    assert [run["outcome"] for run in process.result["runs"]] == ["failed", "measured", "measured"]
    assert process.result["sweeps"][0]["best"] == {"before": 64, "after": 128}
