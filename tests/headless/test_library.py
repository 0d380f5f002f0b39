"""Several scenarios in one command: every lesson, failures on the way, and one table at its end."""

import json
import re
from pathlib import Path

import pytest
from recorded import report_of
from scripted import SCENARIO, CommandLine
from workers import WORKERS

from gpulab.core.units import times
from gpulab.report.sentences import lines

LESSONS = {path.stem for path in (Path(__file__).parents[2] / "scenarios").glob("*.py")}
REFUSED = """
    from gpulab import Scenario, Work
    scenario = Scenario("mine")

    @scenario.variant
    def two(lab): return Work(lambda: None)

    getattr(scenario, 'vari' + 'ant')(lambda lab: None)
"""


FUNCTIONS = """
    def step(): ...
    def other(): ...
    def of_data(data): ...
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_lesson_runs_at_smoke_size_whatever_stands_beside_it(module_lab, monkeypatch, capsys):
    lab = module_lab
    (lab.folder / "scenarios").mkdir()
    lab.write("scenarios/broken.py", "from gpulab import Scenario\nscenario = Scenario(\n")
    lab.write("scenarios/refused.py", REFUSED)
    gpulab = CommandLine(lab, monkeypatch, capsys, WORKERS.command)
    assert gpulab("--new", "scenarios/my_step.py").code == 0
    options = (
        "--smoke",
        "--time",
        "0.1",
        "--device",
        "cpu",
        "--telemetry",
        "off",
        "--json",
        "--output",
        "runs",
    )
    process = gpulab("--run", "all", *options)
    stdout, stderr = process.stdout, process.stderr
    runs = {run["scenario"]: run for run in json.loads(stdout)["runs"]}
    assert set(runs) == LESSONS | {"broken", "refused", "my_step"}
    broken, refused = runs.pop("broken"), runs.pop("refused")
    assert process.code == broken["exit_code"] == refused["exit_code"] == 3
    assert broken["reason"]["code"] == "file_unreadable"
    assert "but its text declares two" in refused["failures"][0]["cause"]["values"]["message"]
    assert {name: problem for name, run in runs.items() if (problem := problem_of(run))} == {}
    assert [variant["name"] for variant in runs["my_step"]["variants"]] == [
        "two_passes",
        "one_pass",
    ]
    assert runs["my_step"]["variants"][1]["status"] == "ok"
    assert all(
        (lab.folder / "runs" / f"{name}.jsonl").exists()
        for name, run in runs.items()
        if run["run_file"]
    )
    assert "a smoke run" not in stderr  # the full results are in the run files
    assert "Traceback" not in stderr.replace(refused["failures"][0]["traceback"], "")


def problem_of(run):
    """What is wrong with the run of a lesson: nothing where it was measured, or lacks something of
    this machine.
    """
    if run["outcome"] == "skipped":
        return None if run["reason"]["values"].get("need") else f"skipped: {run['reason']}"
    # Whether two builds of the baseline differ, and with it the outcome, depends on how busy the
    # machine is.
    statuses = {
        variant["name"]: variant["status"]
        for variant in run["variants"]
        if not lacks_something(variant)
    }
    measured = run["smoke"] and run["failures"] == [] and set(statuses.values()) == {"ok"}
    return None if measured else (run["outcome"], statuses, run["failures"])


def lacks_something(variant):
    return variant["status"] == "skipped" and "need" in variant["reason"]["values"]


def test_plain_functions_are_timed_and_nothing_is_claimed(lab, gpulab):
    lab.write("train.py", FUNCTIONS)
    options = ("--device", "cpu", "--telemetry", "off", "--json")
    process = gpulab("--run", "train.py:step,other", *options)
    assert process.code == 0
    (run,) = json.loads(process.stdout)["runs"]
    assert (run["scenario"], run["functions"], run["comparisons"]) == ("train:step,other", True, [])
    assert run["control"]["speedup"] is not None
    assert [variant["name"] for variant in run["variants"]] == ["step", "other"]
    assert "variant  time/step" in process.stderr  # the table, since stdout has the JSON
    assert "speedup" not in process.stderr.partition("note:")[0]


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    folder = lab.folder / "lessons"
    folder.mkdir()
    for name, text in (
        ("bad", SCENARIO.replace('"fails_at": 0', '"fails_at": 100')),
        ("cuda", SCENARIO.replace('"mine",', '"mine", needs=("cuda",),')),
        ("good", SCENARIO),
        ("odd", "from gpulab import Scenario\nscenario = Scenario()\n"),
    ):
        lab.write(f"lessons/{name}.py", text)
    return CommandLine(lab, monkeypatch, capsys)


def test_a_folder_goes_on_past_failures_and_each_run_is_a_line(lab, gpulab):
    options = (
        "--device",
        "cpu",
        "--quick",
        "--telemetry",
        "off",
        "--json",
        "all.json",
        "--plot",
        "all.png",
    )
    process = gpulab("--run", lab.folder / "lessons", *options)
    assert process.code == 3
    outcomes = {run["scenario"]: run["outcome"] for run in process.result["runs"]}
    assert outcomes == {"bad": "failed", "cuda": "skipped", "good": "measured", "odd": "failed"}
    lines = [" ".join(line.split()) for line in process.stdout.splitlines()]
    assert lines[0].startswith("1 of 3 odd failed odd.py, line 2: ")
    assert lines[1].startswith("2 of 3 bad failed ")
    assert lines[2].startswith("3 of 3 good 2.00x* faster after 1.998 to 2.00")
    assert lines[3].startswith("1 skipped: needs cuda: ")
    assert lines[3].endswith(": cuda")
    assert "* a quick run" in process.stdout
    assert "run files: " in lines[-1]
    assert "epochs," not in process.stdout  # the full results are in the run files
    assert re.search(r"good \(3 of 3\), about \d+ s left", process.stderr)
    assert process.result["runs"][-1]["quick"]
    pictures = {path.name for path in lab.folder.glob("*.png")}
    assert pictures == {"all-bad.png", "all-good.png"}  # of all that were run


def test_scenarios_that_are_named_show_their_results_one_by_one(lab, gpulab):
    files = [lab.folder / "lessons" / f"{name}.py" for name in ("good", "cuda")]
    process = gpulab("--run", *files, "--device", "cpu", "--smoke")
    assert process.code == 3  # what is named must run
    assert "needs cuda" in process.stdout
    assert process.stdout.count("\nruns, outputs agree") == 1
    assert "a smoke run: not for conclusions" in process.stdout
    assert "good (1 of 2)" in process.stderr


def test_what_fixes_promise_one_by_one_stands_beside_what_they_give_together(tmp_path):
    report = report_of("fixes", tmp_path)
    speedups = {comparison.variant: comparison.speedup for comparison in report.comparisons}
    (line,) = (
        line
        for line in lines(report.explanations)
        if line.startswith("product of the individual speedups")
    )
    assert times(speedups["first"].value * speedups["second"].value) in line
    assert f"all fixes together {times(speedups['all_together'])}" in line
    assert report.together.relation == "overlap"
