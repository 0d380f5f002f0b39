"""Whatever a scenario does, the lab says what happened and where, keeps what was measured, and
leaves nothing.
"""

import resource

import pytest
from faults import CASES, LATE, ODD, ODD_TAIL, VARIANT, line_of, scenario, scenario_of
from finished_runs import events_of

from gpulab.core.events import Log, Samples, WorkerExited
from gpulab.core.run_file import read_run_file

LINES = 200_000
HAVE_NO_LINE = ("wrong return", "quantized output")
"""The lab refuses what the variant has returned."""


@pytest.fixture(scope="module")
def faults(module_lab):
    """One run of every fault that ends no process; the path of its scenario is `faults.py`."""
    finished = module_lab.run(scenario_of(module_lab, CASES | ODD, ODD_TAIL), "--smoke")
    finished.processes_left = not module_lab.none_left()
    return finished


@pytest.mark.parametrize("name", CASES)
def test_a_failing_variant_is_named_with_stage_and_line(faults, name):
    _, statement, kind, stage, message = CASES[name]
    variant = name.replace(" ", "_")
    (failure,) = [failure for failure in faults.run["failures"] if failure["variant"] == variant]
    assert (failure["kind"], failure["stage"], failure["cause"]["code"]) == (
        kind,
        stage,
        "exception",
    )
    assert message in failure["cause"]["values"]["message"]
    if name not in HAVE_NO_LINE:
        assert failure["line"] == line_of(faults.run_file.parent / "faults.py", statement)
    assert faults.variant(variant)["status"] == "failed"
    assert faults.variant(variant)["reason"] == failure["cause"]
    assert f"{variant} failed" in faults.stderr


def test_failures_of_some_take_no_other_variant_with_them(faults):
    assert faults.code == 3
    assert {failure["variant"] for failure in faults.run["failures"]} == {
        name.replace(" ", "_") for name in CASES
    }
    assert faults.variant("good")["status"] == "ok"
    assert faults.variant("good")["time_s"]["value"] > 0
    for name in ODD:
        assert faults.variant(name.replace(" ", "_"))["status"] == "ok", name
        assert faults.comparison(name.replace(" ", "_"))["pairs"] > 0, name


def test_a_flood_of_output_keeps_its_first_and_last_lines(faults):
    logs = events_of(faults, Log)
    lines = [line for log in logs for line in log.lines]
    first = lines.index("0")
    assert lines[first : first + 900] == [str(number) for number in range(900)]
    assert lines[-1] == str(LINES - 1)
    assert len(lines) == 2000
    assert sum(log.skipped for log in logs) == first + LINES - 2000


def test_binary_output_and_escape_sequences_never_reach_the_terminal(faults):
    logged = "".join(line for log in events_of(faults, Log) for line in log.lines)
    text = faults.stderr + faults.stdout + logged
    assert not any(
        (ord(mark) < 32 and mark not in "\n\t") or 127 <= ord(mark) < 160 for mark in text
    )
    assert "[bold]x" in faults.stderr
    assert "red" in logged


def test_a_phase_without_a_name_is_no_phase_and_no_failure(faults):
    (finding,) = faults.findings("phases_failed")
    assert finding["variant"] == "phases_of_no_name"
    assert "1 to 100 visible characters" in finding["values"]["message"]


def test_processes_that_the_scenario_started_are_stopped(faults):
    (finding,) = faults.findings("processes_left_running")
    assert finding["values"] == {"count": 2}
    assert not faults.processes_left


def test_a_crash_in_the_measurement_keeps_the_completed_pairs(lab):
    tail = VARIANT.format(name="third", step="pass", build="pass")
    path = scenario(lab, step=LATE + "ctypes.string_at(0)", tail=tail)
    finished = lab.run(path, time_s="10")  # its end comes with the crash
    assert finished.code == 3
    failure = finished.run["failures"][-1]
    assert (failure["kind"], failure["variant"]) == ("crash", "bad")
    assert failure["stage"] in ("warm-up", "measure")  # of a later process
    assert failure["line"] == line_of(path, "string_at")
    assert "Segmentation fault" in failure["traceback"]
    assert finished.run["method"]["epochs"] >= 1
    # What the worker had not sent yet comes from its supervisor, before the report of its death.
    events = read_run_file(finished.run_file).events
    place = next(place for place, event in enumerate(events) if isinstance(event, WorkerExited))
    assert any(isinstance(event, Samples) for event in events[:place])
    assert not any(isinstance(event, Samples) for event in events[place:])
    assert [variant["status"] for variant in finished.run["variants"]] == ["ok", "failed", "ok"]
    assert finished.comparison("third")["pairs"] > 0
    assert finished.comparison("bad") == {}


@pytest.mark.slow
def test_a_run_needs_few_descriptors(lab):
    lab.start_options["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    finished = lab.run(scenario(lab), "--telemetry", "on", time_s="0.1", fresh=True)
    assert finished.code == 0, finished.stderr
    assert finished.comparison("bad")["pairs"] > 0


@pytest.mark.parametrize(
    ("name", "text", "code", "stated"),
    [
        (
            "broken.py",
            "from gpulab import Scenario\n\nscenario = Scenario('x'\n",
            "file_unreadable",
            ["line 3", "'(' was never closed"],
        ),
        (
            "needy.py:step",
            "def step(batch, *, scale):\n    pass\n",
            "takes_arguments",
            ["batch", "scale"],
        ),
    ],
)
def test_what_cannot_run_is_said_without_a_worker(lab, name, text, code, stated):
    lab.write(name.partition(":")[0], text)
    finished = lab.run(name)
    assert finished.code == 3
    assert finished.run["reason"]["code"] == code
    assert not finished.run_file.exists()
    for words in stated:
        assert words in finished.stderr
