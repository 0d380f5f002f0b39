"""However a worker's process ends, or does not, the session says why; and no process outlives
whoever started it.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import wait_for
from faults import ENDS, GRANDCHILD, line_of
from worker_without_torch import events_of_session

from gpulab.core.events import VariantFailed, WorkerExited
from gpulab.core.run_file import read_run_file
from gpulab.core.statuses import Outcome, Stage

SERVE = """
import ctypes, os, signal, subprocess, sys, time
from gpulab.core.events import FindingMade, WorkerDone
from found import finding
from gpulab.core.statuses import Stage

def serve(channel, job, buffer, position, forks):
    position.move(Stage.CHECK, "bad")
    step(channel)

def step(channel):
    {statement}
"""
HAVE_NO_STACK = ("os._exit", "killed", "cpu time", "pipe closed", "raises beside a thread")
TESTS = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "ignores SIGTERM")) for name in ENDS],
)
def test_the_end_of_a_process_is_named_with_stage_and_line(tmp_path, name):
    statement, kind, code, values = ENDS[name]
    for timeout_s in (1.0, 8.0) if kind == "timeout" else (20.0,):
        path = tmp_path / str(timeout_s) / "ends.py"
        path.parent.mkdir()
        path.write_text(SERVE.format(statement=statement))
        events = events_of_session(path, ["good", "bad"], timeout_s=timeout_s)
        (failure,) = [event for event in events if isinstance(event, VariantFailed)]
        if kind != "timeout" or failure.line == line_of(path, statement):
            break  # on a busy machine it is elsewhere, after a second
    if kind == "timeout":
        values = {"timeout_s": timeout_s}
    assert (failure.kind, failure.stage, failure.variant) == (kind, Stage.CHECK, "bad")
    assert (failure.cause.code, failure.cause.values) == (code, {**failure.cause.values, **values})
    assert failure.line == (None if name in HAVE_NO_STACK else line_of(path, statement))
    assert events[-1].outcome == (Outcome.TIMEOUT if kind == "timeout" else Outcome.FAILED)
    (exited,) = [event for event in events if isinstance(event, WorkerExited)]
    assert exited.orphans == 0


def test_no_worker_survives_its_killed_parent(lab):
    statements = f'{GRANDCHILD.format(True)}; channel.emit(FindingMade(finding=finding("up"))); time.sleep(600)'
    path = lab.write("ends.py", SERVE.format(statement=statements))
    code = (
        "from pathlib import Path; from worker_without_torch import events_of_session as run; "
        f"run(Path({str(path)!r})"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", f"{code}, ['good', 'bad'])"],
        env=lab.env | {"PYTHONPATH": str(TESTS)},
    )
    file = path.with_suffix(".jsonl")
    wait_for(lambda: file.exists() and b'"type":"Noticed"' in file.read_bytes())
    assert len(lab.processes()) == 4  # the parent, the supervisor, the worker, and its own
    process.kill()
    process.wait()
    assert lab.none_left()
    recording = read_run_file(file)
    assert recording.garbled == []
    assert recording.events
