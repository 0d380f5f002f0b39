"""Whatever signal comes, at whatever moment of a command: it ends with its file and its code, and
leaves nothing.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import GPULAB, wait_for
from program import SCENARIO
from signal_programs import (
    ENDING,
    at_stage,
    full_pipe,
    headless,
    is_at,
    on_terminal,
    outcome_of,
)


def ends_of(processes):
    """By the name of the signal the exit code and what was printed."""
    ends = {}
    for name, process in processes.items():
        stdout, stderr = process.communicate(timeout=30)
        ends[name] = process.returncode, (stdout or b"") + (stderr or b"")
    return ends


def test_while_it_is_imported_a_signal_ends_it_as_that_signal(lab):
    processes = {
        which.name: subprocess.Popen(
            [GPULAB[0], "-X", "importtime", *GPULAB[1:], "--run", "all", "--output", "run"],
            cwd=lab.folder, env=lab.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for which in ENDING
    }  # fmt: skip
    for name, process in processes.items():
        # one of the first modules of the program
        while b"argparse" not in process.stderr.readline():
            pass
        process.send_signal(signal.Signals[name])
    for name, (code, printed) in ends_of(processes).items():
        assert code == -signal.Signals[name], printed
        assert b"Traceback" not in printed
    assert not (lab.folder / "run").exists()


@pytest.mark.parametrize(
    ("stage", "names"),
    [("LOAD", ["SIGQUIT"]), ("MEASURE", ["SIGINT", "SIGHUP"]), ("PROFILE", ["SIGTERM"])],
)
def test_a_run_that_a_signal_stops_has_its_end(lab, stage, names):
    processes, files = {}, {}
    for name in names:
        processes[name], files[name] = headless(lab, stage, name)
    for name, process in processes.items():
        wait_for(lambda: is_at(files[name], stage), within=30)  # noqa: B023
        process.send_signal(signal.Signals[name])
    for name, (code, printed) in ends_of(processes).items():
        assert code == 130, printed
        assert b"Traceback" not in printed
        assert outcome_of(files[name]) == "cancelled"
        assert json.loads(files[name].with_suffix(".json").read_text())["exit_code"] == 130
    assert lab.none_left()


def test_while_it_prints_a_signal_ends_it_as_that_signal(lab):
    read_end, write_end = full_pipe()
    process, file = headless(lab, "never", stdout=write_end)
    wait_for(lambda: outcome_of(file) == "done", within=30)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT, stderr
    assert b"Traceback" not in stderr
    assert not file.with_suffix(".json").exists()  # neither half of it nor an empty one
    os.close(read_end), os.close(write_end)
    assert lab.none_left()


@pytest.mark.slow
def test_what_was_ignored_stays_ignored(lab):
    """As SIGHUP is under nohup, and SIGINT in the background of a script."""

    def ignore():
        for which in (signal.SIGHUP, signal.SIGINT):
            signal.signal(which, signal.SIG_IGN)

    process, file = headless(lab, "MEASURE", preexec_fn=ignore)
    wait_for(lambda: is_at(file, "MEASURE"), within=30)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert outcome_of(file) is None
    process.terminate()
    process.communicate(timeout=30)
    assert (process.returncode, outcome_of(file)) == (130, "cancelled")


def test_a_terminal_that_goes_away_ends_the_run_with_its_file(lab):
    terminal, file = on_terminal(lab, "MEASURE")
    at_stage(terminal, lambda: file, "MEASURE")
    terminal.hang_up()
    assert terminal.end() == 130
    assert outcome_of(file) == "cancelled"
    assert lab.none_left()


def test_a_killed_run_leaves_no_half_a_result(lab):
    process, file = headless(lab, "MEASURE")
    wait_for(lambda: is_at(file, "MEASURE"), within=30)
    process.kill()
    process.communicate(timeout=30)
    assert lab.none_left()
    assert {path.name for path in lab.folder.iterdir()} - {"state", "cache", "__pycache__"} == {
        "run.jsonl",
        "waits.py",
    }


NOTEBOOK = """
import signal, sys
from functools import partial
from worker_without_torch import COMMAND
handlers = [signal.getsignal(which) for which in signal.valid_signals()]
import gpulab
from gpulab.session import launch
from gpulab.session.session import Session
launch.Session = partial(Session, command=COMMAND)
assert handlers == [signal.getsignal(which) for which in signal.valid_signals()]
try:
    gpulab.run("waits.py", params={"stubborn": True}, device="cpu", telemetry="off", output="run.jsonl")
except KeyboardInterrupt:
    assert handlers == [signal.getsignal(which) for which in signal.valid_signals()]
    report = gpulab.load("run.jsonl")
    print(report.exit_code, flush=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
"""


@pytest.mark.slow
def test_in_a_notebook_ctrl_c_passes_on_once_the_run_has_ended(lab):
    """Asked a second time while it waits it still leaves no worker behind, nor what that started."""
    lab.write("waits.py", SCENARIO)
    folders = (lab.env.get("PYTHONPATH", ""), str(Path(__file__).parents[2]))
    environment = {**lab.env, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    process = subprocess.Popen(
        [sys.executable, "-c", NOTEBOOK],
        cwd=lab.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    file = lab.folder / "run.jsonl"
    wait_for(lambda: is_at(file, "MEASURE"), within=30)
    for _ in range(3):  # the end of a worker that ignores SIGTERM takes longer
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    stdout, stderr = process.communicate(timeout=30)
    assert (stdout, process.returncode) == (b"130\n", 0), stderr.decode()
    assert lab.none_left()


NESTED = """
import signal, sys, time
from pathlib import Path
from gpulab.core.jobs import Calibrate, RunRequest
from gpulab.core.run_file import RunFile
from gpulab.session.session import Session
request = RunRequest(job=Calibrate(), telemetry="off")
session = Session(request, RunFile(Path("run.jsonl"), "0"), (sys.executable, "-c", "import time; time.sleep(600)"))
signal.signal(signal.SIGVTALRM, lambda *_: session.cancel())
signal.setitimer(signal.ITIMER_VIRTUAL, 0.001, 0.001)
end = time.process_time() + 0.3
while time.process_time() < end:
    session.cancel()
signal.setitimer(signal.ITIMER_VIRTUAL, 0)
"""


def test_a_handler_in_the_middle_of_a_cancel_waits_for_nothing(lab):
    subprocess.run(
        [sys.executable, "-c", NESTED], cwd=lab.folder, env=lab.env, check=True, timeout=20
    )


def test_the_doctor_leaves_no_probe_behind(lab):
    process = lab.start("--doctor")
    wait_for(lambda: any(b"probe" in command for command in lab.processes().values()))
    process.terminate()
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGTERM
    assert b"Traceback" not in stderr
    assert lab.none_left()
