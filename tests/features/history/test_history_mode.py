"""`--history`: a line a scenario, its runs and which lie outside those before, from whatever is left
of the store; and run files that go.
"""

import fcntl
import os
import random
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from math import exp

import pytest
from recorded import run_file
from scripted import SCENARIO, CommandLine

from gpulab.core.machine import Device
from gpulab.core.statuses import Conclusion, ExitCode, Verdict
from gpulab.headless.scripting import load
from gpulab.report.past import PastComparison, PastRun
from gpulab.session.run_files import runs_folder, state_folder
from gpulab.session.store import NAME, Store

OLD, NEW = ({"driver": driver, "torch": "2.13"} for driver in ("570.86", "580.159"))


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    command_line = CommandLine(lab, monkeypatch, capsys)
    runs_folder().mkdir(parents=True)
    return command_line


def past(number, speedup, **changes):
    """A run of the day of that number, with a file."""
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
    path = runs_folder() / f"{at:%Y%m%d}-x-1.jsonl"
    path.write_text("x" * 100)
    entry = PastComparison(
        variant="fused",
        against="eager",
        verdict=Verdict.FASTER,
        measured=speedup,
        low=speedup * 0.99,
        high=speedup * 1.01,
    )
    usual = {
        "at": at.isoformat(),
        "run_file": str(path),
        "scenario": "mine",
        "path": "/lab/mine.py",
        "source_sha256": "ab" * 32,
        "device": Device(kind="cuda", name="NVIDIA H100", uuid="GPU-1"),
        "environment": NEW,
        "outcome": Conclusion.MEASURED,
        "exit_code": ExitCode.MEASURED,
        "comparisons": (entry,),
        "best": "fused",
    }
    return PastRun(**{**usual, **changes})


def levels(*parts):
    """Runs at one level after another: (how many, speedup, environment, ...)."""
    draw = random.Random(1)
    runs = []
    for count, speedup, environment, *changes in parts:
        more = changes[0] if changes else {}
        for _ in range(count):
            value = speedup * exp(draw.gauss(0, 0.003))
            runs.append(past(len(runs), value, environment=environment, **more))
    return runs


def enter(runs):
    with Store() as store:
        for run in runs:
            store.add_run(run)


def lines(text, word):
    return [line for line in text.splitlines() if word in line]


def test_a_speedup_outside_the_range_of_those_before_is_said_with_what_changed(gpulab):
    enter(levels((12, 1.5, OLD), (12, 1.56, NEW), (1, 1.40, NEW), (3, 1.5, NEW)))
    (line,) = lines(gpulab("--history").stdout, "mine")
    assert line.split()[:2] == ["mine", "28"]
    assert "fused 1.40x on 01-25 outside 1." in line
    of_one = gpulab("--history", "mine", "--json", "r.json")
    (driver,) = lines(of_one.stdout, "driver 570.86 → 580.159")
    assert driver.strip().startswith("outside 1.")
    assert lines(of_one.stdout, "same versions, power limit and source")
    (scenario,) = of_one.result["scenarios"]
    (group,) = scenario["groups"]
    points = group["trends"][0]["points"]
    assert len(points) == 28
    first, second = (point for point in points if point["outside"])
    assert first["outside"]["runs"] == 12
    assert first["outside"]["high"] < first["low"]
    (changed,) = first["changed"]
    assert changed == {"what": "driver", "before": "570.86", "after": "580.159"}
    assert second["changed"] == []
    assert second["high"] < second["outside"]["low"]
    assert len(scenario["entries"]) == 28
    assert scenario["entries"][0]["at"] > scenario["entries"][1]["at"]


def test_a_power_limit_a_source_and_too_few_runs_are_said(gpulab):
    other = {"power_limit_w": 500.0, "source_sha256": "cd" * 32}
    enter(levels((6, 1.5, NEW, {"power_limit_w": 700.0})))
    assert "fused: 6 runs, too few" in gpulab("--history", "mine").stdout
    enter(levels((6, 1.5, NEW, {"power_limit_w": 700.0}), (1, 1.2, NEW, other)))
    shown = gpulab("--history", "mine").stdout
    assert lines(shown, "power limit 700 W → 500 W, source abababa → cdcdcdc")
    enter(levels((7, 1.5, NEW, {"scenario": "calm"})))
    assert "none of 7 runs outside" in gpulab("--history", "calm").stdout


def test_runs_that_measured_something_else_are_groups_of_their_own(gpulab):
    small = {"params": {"n": 8}, "at": "2025-01-01T00:00:00+00:00"}
    enter([*levels((4, 1.5, NEW)), past(30, 9.0, **small), past(40, 3.0, smoke=True)])
    history = gpulab("--history", "--json", "r.json").result["scenarios"][0]
    assert [(group["runs"], group["params"]) for group in history["groups"]] == [
        (4, {}),
        (1, {"n": 8}),
    ]
    assert history["last_result"]["at"] < history["newest"]["at"], "the newest is a smoke run"
    assert "smoke" not in lines(gpulab("--history").stdout, "mine")[0]


@pytest.mark.parametrize("harm", ["missing", "torn", "stale"])
def test_it_is_made_again_of_the_run_files(gpulab, harm):
    first = run_file("healthy", runs_folder())
    name = load(first).scenario
    assert lines(gpulab("--history").stdout, name)[0].split()[1] == "1"
    later = first.with_name("later.jsonl")
    later.write_bytes(first.read_bytes().replace(b'"at":"20', b'"at":"21', 1))
    store = state_folder() / NAME
    if harm == "missing":
        store.unlink()
    if harm == "torn":
        os.truncate(store, store.stat().st_size // 2)
    shown = gpulab("--history")
    if harm == "torn":
        assert "the store was damaged" in shown.stderr
        shown = gpulab("--history")
    assert lines(shown.stdout, name)[0].split()[1] == "2"
    first.unlink()
    assert lines(gpulab("--history").stdout, name)[0].split()[1] == "1"


def test_what_cannot_be_read_is_counted_and_takes_nothing_with_it(gpulab):
    enter(levels((3, 1.5, NEW)))
    folder = runs_folder()
    whole = run_file("healthy", folder).read_bytes()
    (folder / "cut.jsonl").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.jsonl").touch()
    (folder / "newer.jsonl").write_bytes(whole.replace(b'"version":2', b'"version":9', 1))
    (folder / "garbled.jsonl").write_bytes(b"\xff" + whole)
    shown = gpulab("--history")
    assert shown.code == 0
    assert "4 runs in" in shown.stdout
    assert "4 other files there have no end" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "nothing: it has not run here: mine did"),
        (["--prune", "--keep", "0"], "--keep 0: write how many runs"),
        (["--prune", "--keep", "x.py"], "--keep x.py: write how many runs"),
    ],
)
def test_what_makes_no_sense_is_refused(gpulab, arguments, said):
    enter(levels((1, 1.5, NEW)))
    refused = gpulab("--history", *arguments)
    assert refused.code == 2
    assert said in refused.stderr


def test_the_oldest_files_of_each_scenario_go_and_no_others(gpulab, tmp_path):
    runs = levels((8, 1.5, NEW))
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_text("x")
    other = past(20, 1.5, scenario="other", at="2020-01-01T00:00:00+00:00")
    enter([*runs, past(-1, 1.5, run_file=str(elsewhere)), other])
    names = [os.path.basename(run.run_file) for run in runs]  # noqa: PTH119 - a text
    folder = runs_folder()
    (tmp_path / "link").hardlink_to(folder / names[1])
    snapshot = folder / f"{names[0].removesuffix('.jsonl')}-fused.pickle"
    snapshot.write_text("x" * 900)
    counted = (folder / names[0]).with_suffix(".ncu-rep")
    counted.write_text("x" * 100)
    (folder / "20200101-goes-on-1.jsonl").write_text("x")
    before = list(folder.iterdir())
    with (folder / names[2]).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = gpulab("--history", "mine", "--prune", "--keep", "3")
    assert done.code == 0
    assert "deleted 5 files, 1.27 KiB (1,300 bytes)" in done.stdout
    gone = set(before) - set(folder.iterdir())
    beside = {snapshot.name, counted.name}
    assert {path.name for path in gone} == {names[0], names[3], names[4], *beside}
    assert elsewhere.exists()
    assert lines(gpulab("--history").stdout, "mine")[0].split()[1] == "6"


HOLDS = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("PRAGMA locking_mode = EXCLUSIVE")
db.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("harm", ["torn", "locked", "nowhere"])
def test_a_run_is_measured_whatever_the_store_is_and_says_one_line(gpulab, monkeypatch, harm):
    gpulab.lab.write("mine.py", SCENARIO)
    run = ("--run", "mine.py", "--telemetry", "off", "--json", "r.json", "--output")
    assert gpulab(*run, "first.jsonl").code == 0
    store = state_folder() / NAME
    code = "store_unused"
    with ExitStack() as stack:
        if harm == "torn":
            store.write_bytes(b"garbage" * 1000)
            code = "store_set_aside"
        if harm == "locked":
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            command = [sys.executable, "-c", HOLDS, str(store)]
            holder = stack.enter_context(subprocess.Popen(command, **pipes))
            assert holder.stdout.readline() == b"held\n"
        if harm == "nowhere":
            monkeypatch.setenv("XDG_STATE_HOME", str(gpulab.lab.folder / "mine.py"))
        again = gpulab(*run, "second.jsonl")
    assert again.code == 0, again.stderr
    assert [finding["code"] for finding in again.run["explanations"]].count(code) == 1
    assert again.stdout.count("the store") == 1
