"""One run of a scenario as a user meets it: the table, the JSON, the run file and the exit code are
of one result.
"""

import json
import re
import subprocess

import pytest
from conftest import Finished
from scripted import OVER_SCRIPT

from gpulab.headless.scripting import load
from gpulab.report.sentences import to_json

SCENARIO = """
    \"\"\"Twice: one multiplication and two.\"\"\"
    from gpulab import Scenario
    scenario = Scenario("mine", params={"n": 4096, "name": "µ", "flag": False}, claim="2x", ladder=True)

    @scenario.variant
    def two(lab, n): ...

    @scenario.variant(claim="2x, surely")
    def one(lab, n): ...

    @scenario.variant(needs=("cuda",))
    def on_gpu(lab, n): ...

    @scenario.variant(against=None)
    def scale(lab, n, flag): ...
"""


@pytest.fixture(scope="module")
def measured(module_lab):
    """The finished run, in a locale that has no more than ASCII."""
    lab = module_lab
    lab.env = {name: value for name, value in lab.env.items() if not name.startswith("LC_")}
    lab.env["LANG"] = "C"
    path = lab.write("mine.py", SCENARIO)
    options = "--device cpu --telemetry off --set n=64 --seed 3 --json out.json --output run.jsonl"
    done = subprocess.run(
        [*OVER_SCRIPT, "--run", path, *options.split()],
        cwd=lab.folder,
        env=lab.env,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    result = json.loads((lab.folder / "out.json").read_text())
    return Finished(done.returncode, done.stdout, done.stderr, lab.folder / "run.jsonl", result)


def test_the_table_is_on_stdout_and_progress_on_stderr(measured):
    rows = {}
    for line in measured.stdout.splitlines():
        rows.setdefault(line.split()[0] if line.strip() else "", line)
    assert "baseline" in rows["two"]
    assert re.search(r"(?m)^one +\d.*us .*2.00x +\d.* to .* faster", measured.stdout)
    assert "control" in rows
    assert re.search(r"one (verified|doubtful|unchecked): ", measured.stdout)
    assert "skipped" in rows["on_gpu"]
    assert "on_gpu skipped: needs cuda: " in measured.stdout
    assert "claim: 2x; measured here: one" in measured.stdout
    assert "claim of one: 2x, surely; measured here:" in measured.stdout
    assert "scale: mean 0.5" in measured.stdout
    assert "--verbose" in measured.stdout
    assert f"run file: {measured.run_file.name}" in measured.stdout
    assert measured.stderr.startswith("mine - ")
    assert "{" not in measured.stdout + measured.stderr


def test_everything_is_ascii_where_the_locale_is(measured):
    assert "+-" in measured.stdout  # of an interval
    assert "name=u" in measured.stdout
    assert (measured.stdout + measured.stderr).isascii()


def test_the_json_has_the_documented_fields(measured):
    assert measured.result["schema"] == "gpulab.result/2"
    assert measured.result["exit_code"] == measured.code
    assert measured.code == 0
    assert measured.result["environment"] == {"torch": "0"}
    run = measured.run
    assert (run["scenario"], run["params"]["n"], run["seed"], run["claim"]) == ("mine", 64, 3, "2x")
    assert re.fullmatch("[0-9a-f]{64}", run["source_sha256"])
    assert set(run["device"]) >= {"kind", "name", "uuid", "threads"}
    assert set(run["method"]) >= {
        "clock",
        "cache",
        "epochs",
        "rounds",
        "confidence",
        "floor",
        "stopped",
        "processes",
    }
    assert set(run["control"]) >= {"speedup", "verdict"}
    assert run["telemetry"] is None
    variant = measured.variant("one")
    assert set(variant) >= {
        "name", "status", "reason", "items", "bytes", "flops", "time_s", "steps_per_block", "contention", "build_s",
        "first_step_s", "solo_run",
    }  # fmt: skip
    assert variant["solo_run"] is None
    assert variant["time_s"]["low"] <= variant["time_s"]["value"] <= variant["time_s"]["high"]
    assert [comparison["variant"] for comparison in run["comparisons"]] == ["one"]
    assert set(run["comparisons"][0]) == {
        "variant", "against", "speedup", "mde", "pairs", "dropped", "verdict", "reason",
        "earlier", "sustained", "trust", "shown",
    }  # fmt: skip
    assert measured.variant("on_gpu")["status"] == "skipped"
    assert measured.variant("on_gpu")["reason"]["values"]["need"] == "cuda"
    (figure,) = run["figures"]
    assert figure.items() >= {"variant": "scale", "name": "mean", "value": 0.5}.items()


def test_the_run_file_holds_the_same_result(measured):
    report = json.loads(to_json(load(measured.run_file)))
    run = {**measured.run, "run_file": str(measured.run_file)}
    assert measured.run["run_file"] == measured.run_file.name
    assert report == run
