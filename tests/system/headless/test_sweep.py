"""`--sweep`: one run a value, a table, a chart, the best marked, and the same in the JSON."""

import pytest
from conftest import printed
from scripted import SCENARIO, CommandLine

from gpulab.report.commands import sweep_of
from gpulab.report.report import RunReport, Time, VariantReport
from gpulab.views.sweep import sweep_view
from gpulab.views.text import Glyphs


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    lab.write("swept.py", SCENARIO)
    return CommandLine(lab, monkeypatch, capsys)


@pytest.mark.parametrize("values", [[], ["n"], ["n=64,4096"]])
def test_every_value_is_one_run_and_the_best_is_marked(lab, gpulab, values):
    process = gpulab("--run", "swept.py", "--json", "out.json", "--output", "runs", "--time", "0.2", "--sweep", *values)
    assert process.code == 0
    assert [run["params"]["n"] for run in process.result["runs"]] == [64, 4096]
    (sweep,) = process.result["sweeps"]
    assert sweep == {"scenario": "swept", "parameter": "n", "best": {"before": 64, "after": 64}, "near": NONE_NEAR}
    assert sorted(file.name for file in (lab.folder / "runs").iterdir()) == ["swept-n-4096.jsonl", "swept-n-64.jsonl"]
    assert process.stdout.count(" best") == 4  # in the table and in the chart, for each variant
    assert "before n=64" in process.stdout
    assert "(2 of 2)" in process.stderr


NONE_NEAR = {"before": [], "after": []}


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ("m", "has no sweep of it; write --sweep m=a,b,c"),
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


def test_hostile_names_and_values_are_harmless(lab, gpulab):
    lab.write("swept.py", SCENARIO.replace("before", "größer_als_alle_anderen_varianten"))
    process = gpulab("--run", "swept.py", "--time", "0.2", "--ascii", "--sweep", "m=../a/b,\x1b[31mred")
    assert process.code == 0
    assert "\x1b" not in process.stdout + process.stderr
    assert (process.stdout + process.stderr).isascii()
    assert all(len(row) <= 80 for row in process.stdout.splitlines() if not row.startswith("run file"))
    assert len(list((lab.folder / "state").rglob("*swept-m-.._a_b*.jsonl"))) == 1


def test_a_broken_file_is_reported_with_its_line(lab, gpulab):
    lab.write("broken.py", "from gpulab import Scenario\nx =")
    process = gpulab("--run", "broken.py", "--sweep", "n=1,2")
    assert process.code == 3
    assert "line 2: syntax error" in process.stdout


def test_a_value_is_set_or_swept(gpulab):
    process = gpulab("--run", "swept.py", "--set", "n=3", "--sweep", "n=1,2")
    assert process.code == 2
    assert "one or the other" in process.stderr


def test_a_point_that_fails_leaves_the_others(gpulab):
    options = ("--time", "0.2", "--json", "out.json", "--set", "fails_at=64")
    process = gpulab("--run", "swept.py", *options, "--sweep", "n=64,128,256")
    assert process.code == 3
    assert "n=64: failed: AssertionError: no (after, build, line 7)" in process.stdout
    assert "after n=256" in process.stdout
    assert "Traceback (most recent call last)" in process.stderr
    assert [run["outcome"] for run in process.result["runs"]] == ["failed", "measured", "measured"]
    assert process.result["sweeps"][0]["best"] == {"before": 64, "after": 128}


def run_report(n, low, median, high):
    time = Time(median=median, low=low, high=high)
    return RunReport(scenario="s", params={"n": n}, variants=[VariantReport(name="v", status="ok", time_s=time)])


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_chart_puts_each_interval_on_one_axis(width, ascii_only):
    reports = [run_report(1, 1e-6, 1.5e-6, 2e-6), run_report(2, 4e-6, 4e-6, 4e-6), run_report(3, 90e-6, 95e-6, 1e-4)]
    text = printed(sweep_view(sweep_of("n", reports), reports, Glyphs(ascii_only), width), width)
    line, dot = ("-", "o") if ascii_only else ("─", "●")
    rows = [row for row in text.splitlines() if dot in row and row.startswith("v n=")]
    assert len(rows) == 3
    assert [row.index(dot) for row in rows] == sorted(row.index(dot) for row in rows)
    assert line in rows[0]
    assert line not in rows[1].replace("v n=2", "")
    assert "best" in rows[0]
    assert all(len(row) <= width for row in text.splitlines())
    assert "0.00" not in text
    assert text.isascii() or not ascii_only
