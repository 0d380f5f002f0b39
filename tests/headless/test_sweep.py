"""`--sweep`: one run a value, a table, a chart, the best marked, and the same in the JSON."""

import json

import pytest
from conftest import printed

from gpulab.model.conclude import swept
from gpulab.model.result import RunResult, Time, VariantResult
from gpulab.views.sweep import sweep
from gpulab.views.text import Glyphs

SWEPT = """
    \"\"\"Swept: x.\"\"\"
    import torch
    from gpulab import Scenario, Work
    scenario = Scenario("mine", params={"n": 100, "m": 1}, sweep={"n": (64, 4096)})

    @scenario.variant
    def one(lab, n, m):
        x = torch.rand(n)
        return Work(lambda: x * 2, inputs=x, items=n)

    @scenario.variant
    def two(lab, n, m):
        x = torch.rand(n)
        return Work(lambda: x + x, inputs=x, items=n)
"""


@pytest.mark.parametrize("asked", [[], ["n"], ["n=64,4096"]])
def test_every_value_is_one_run_and_the_best_is_marked(lab, asked):
    path = lab.write("swept.py", SWEPT)
    options = ("--device", "cpu", "--time", "0.2", "--json", "out.json", "--output", "runs")
    done = lab.call("--run", path, *options, "--sweep", *asked)
    assert done.code == 0
    found = json.loads((lab.folder / "out.json").read_text())
    assert [run["params"]["n"] for run in found["runs"]] == [64, 4096]
    assert found["sweeps"] == [{"scenario": "swept", "parameter": "n", "best": {"one": 4096, "two": 4096}}]
    assert sorted(file.name for file in (lab.folder / "runs").iterdir()) == ["swept-n-4096.jsonl", "swept-n-64.jsonl"]
    assert done.stdout.count(" best") == 4  # in the table and in the chart, for each variant
    assert "one n=64" in done.stdout
    assert "(2 of 2)" in done.stderr


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("m", "has no sweep of it; write --sweep m=a,b,c"),
        ("m=", "it has no values"),
        ("q=1,2", "has no parameter 'q'; it has n=100, m=1"),
        ("n=1,x", "n takes a whole number"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_told_before_anything_runs(lab, asked, message):
    done = lab.call("--run", lab.write("swept.py", SWEPT), "--device", "cpu", "--sweep", asked)
    assert done.code == 2
    assert message in done.stderr
    assert "(1 of" not in done.stderr


def test_names_and_values_of_a_stranger_are_harmless(lab):
    text = SWEPT.replace('"m": 1', '"m": "x"').replace("def one(", "def größer_als_alle_anderen_varianten(")
    path = lab.write("swept.py", text)
    done = lab.call("--run", path, "--device", "cpu", "--time", "0.2", "--ascii", "--sweep", "m=../a/b,\x1b[31mred")
    assert done.code == 0
    assert "\x1b" not in done.stdout + done.stderr
    assert (done.stdout + done.stderr).isascii()
    assert all(len(row) <= 80 for row in done.stdout.splitlines() if not row.startswith("run file"))
    assert len(list((lab.folder / "state").rglob("*swept-m-.._a_b*.jsonl"))) == 1


def test_a_broken_file_says_why(lab):
    done = lab.call("--run", lab.write("swept.py", "from gpulab import Scenario\nx ="), "--sweep", "n=1,2")
    assert done.code == 3
    assert "line 2: syntax error" in done.stdout


def test_a_value_is_set_or_swept(lab):
    done = lab.call("--run", lab.write("swept.py", SWEPT), "--set", "n=3", "--sweep", "n=1,2")
    assert done.code == 2
    assert "one or the other" in done.stderr


def test_a_point_that_fails_leaves_the_others(lab):
    path = lab.write("swept.py", SWEPT.replace("x = torch.rand(n)\n", "x = torch.rand(n); assert n != 64, 'no'\n", 1))
    done = lab.call("--run", path, "--device", "cpu", "--time", "0.2", "--sweep", "n=64,128,256")
    assert done.code == 3
    assert "n=64: failed: AssertionError: no" in done.stdout
    assert "one n=256" in done.stdout


def of(n, low, median, high):
    time = Time(median=median, low=low, high=high)
    return RunResult(scenario="s", params={"n": n}, variants=[VariantResult(name="v", status="ok", time_s=time)])


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_chart_puts_each_interval_on_one_axis(width, ascii_only):
    runs = [of(1, 1e-6, 1.5e-6, 2e-6), of(2, 4e-6, 4e-6, 4e-6), of(3, 90e-6, 95e-6, 1e-4)]
    text = printed(sweep(swept("n", runs), runs, Glyphs(ascii_only), width), width)
    line, dot = ("-", "o") if ascii_only else ("─", "●")
    rows = [row for row in text.splitlines() if dot in row and row.startswith("v n=")]
    assert [row.index(dot) for row in rows] == sorted(row.index(dot) for row in rows)
    assert line in rows[0]
    assert line not in rows[1].replace("v n=2", "")
    assert "best" in rows[0]
    assert all(len(row) <= width for row in text.splitlines())
    assert "0.00" not in text
    assert text.isascii() or not ascii_only
