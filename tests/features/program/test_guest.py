"""A program that is followed is as it is alone: its output, files, exit code and signals."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest
from guests import (
    CLOSES,
    COMPILED,
    EXPORTED,
    HANDLER,
    OWN_PROFILERS,
    PIPES,
    SCHEDULED,
)

_FLAGS = ("--run", "--telemetry", "off")
_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGQUIT,
)


def run_alone(lab, *command):
    return subprocess.run(
        [sys.executable, *command],
        cwd=lab.folder,
        env=lab.env,
        capture_output=True,
        text=True,
        timeout=300,
    )


def assert_same(lab, *command):
    """It prints and ends as it does alone; returns the finished command with its result."""
    alone = run_alone(lab, *command)
    finished = lab.call(*_FLAGS, "--json", "r.json", "--", sys.executable, *command)
    assert (finished.stdout, finished.code) == (alone.stdout, alone.returncode), finished.stderr
    finished.result = json.loads((lab.folder / "r.json").read_text())
    return finished, alone


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("form", ["optimizer", "step", "model", "late"])
def test_what_is_compiled_is_compiled_as_alone(lab, form, backend):
    lab.timeout_s = 300
    lab.write("compiled.py", COMPILED)
    finished, _ = assert_same(lab, "compiled.py", form, backend)
    assert finished.run["program"]["steps"] >= 700


@pytest.mark.slow
def test_what_is_exported_scripted_or_traced_has_nothing_of_ours(lab):
    lab.write("exported.py", EXPORTED)
    finished, alone = assert_same(lab, "exported.py")
    assert alone.returncode == 1
    # the traceback of its end too: no frame of ours is in it
    assert finished.stderr.startswith(alone.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("warmup", ["1", "20"])
def test_a_program_with_a_profiler_of_its_own_is_not_recorded(lab, warmup):
    lab.write("scheduled.py", SCHEDULED)
    finished, _ = assert_same(lab, "scheduled.py", warmup)
    assert finished.explanations("recorded_elsewhere")


@pytest.mark.slow
def test_a_profiler_that_the_program_starts_ends_ours(lab):
    lab.write("profilers.py", OWN_PROFILERS)
    assert_same(lab, "profilers.py")


def test_a_program_that_closes_and_exchanges_descriptors_keeps_its_file(lab):
    lab.write("closes.py", CLOSES)
    finished, _ = assert_same(lab, "closes.py")
    assert finished.stdout == "beginend\n"
    assert finished.run["program"]["steps"] > 3


def test_what_is_no_file_of_ours_in_the_folder_is_passed_over(lab):
    lab.write("pipes.py", PIPES)
    finished = lab.call(*_FLAGS, "--", sys.executable, "pipes.py")
    assert (finished.stdout, finished.code) == ("made\n", 0)


def _signalled(lab, number, send):
    """What a program says of a signal that `send` sends: how often it came."""
    lab.write("handler.py", HANDLER)
    command = (*_FLAGS, "--", sys.executable, "handler.py", str(int(number)), "1.5")
    process = lab.start(*command, start_new_session=True)
    assert process.stdout.readline() == b"ready\n"
    send(process.pid, number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 7, stderr
    return int(stdout)


def _to_each(group, number):
    """As systemd and Slurm do: to one process of a job after another."""
    for pid in psutil.pids():
        with suppress(OSError):
            if os.getpgid(pid) == group:
                os.kill(pid, number)


@pytest.mark.parametrize("send", [os.killpg, os.kill, _to_each], ids=["group", "alone", "each"])
def test_a_signal_comes_once(lab, send):
    assert _signalled(lab, signal.SIGTERM, send) == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", _SIGNALS)
@pytest.mark.parametrize("send", [os.killpg, os.kill, _to_each], ids=["group", "alone", "each"])
def test_each_signal_comes_once_each_time(lab, send, number):
    assert [_signalled(lab, number, send) for _ in range(5)] == [1] * 5


def test_a_program_runs_where_no_run_file_can_be_kept(lab):
    lab.env["XDG_STATE_HOME"] = "/proc/none"
    lab.write("taken", "")
    for flags, words in (
        ((), "/proc/none/gpulab/runs cannot be written: the run is kept in"),
        (("--output", "taken"), "--output taken exists, and runs are never overwritten"),
        (("--output", "/proc/none/r"), "--output /proc/none/r cannot be made"),
    ):
        finished = lab.call(*_FLAGS, *flags, "--", "sh", "-c", "echo ran; exit 5")
        assert (finished.stdout, finished.code) == ("ran\n", 5)
        assert words in finished.stderr
        path = re.search(r"^run file: (\S+)", finished.stderr, re.MULTILINE)[1]
        assert (lab.folder / path).stat().st_size
        (lab.folder / path).unlink()
    assert (lab.folder / "taken").read_text() == ""


def test_a_program_runs_where_nothing_can_be_written(lab):
    lab.env |= {"XDG_STATE_HOME": "/proc/none", "TMPDIR": "/proc/none"}
    code = "import tempfile; tempfile.gettempdir = lambda: '/proc/none'; from gpulab.cli import main; raise SystemExit(main())"
    command = [sys.executable, "-c", code, *_FLAGS, "--", "sh", "-c", "echo ran; exit 5"]
    finished = subprocess.run(command, env=lab.env, capture_output=True, text=True, timeout=60)
    assert (finished.stdout, finished.returncode) == ("ran\n", 5)
    assert "no file can be written" in finished.stderr


@pytest.mark.parametrize("mode", ["--doctor", "--list", "--history"])
def test_a_user_without_home_and_name_gets_every_mode(lab, mode):
    code = "import os, pwd, sys; pwd.getpwuid = lambda _: {}['none']; from gpulab.cli import main; raise SystemExit(main())"
    env = {name: value for name, value in lab.env.items() if not name.startswith(("XDG", "HOME"))}
    env["TMPDIR"] = str(lab.folder)
    command = [sys.executable, "-c", code, mode]
    finished = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert finished.returncode == 0, finished.stderr
    assert "Traceback" not in finished.stderr


def test_a_closed_stdout_is_closed_in_the_program(lab):
    program = "import sys; print(1); sys.exit(5)"
    command = [sys.executable, "-m", "gpulab", *_FLAGS, "--", sys.executable, "-c", program]
    finished = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command], env=lab.env, stderr=subprocess.PIPE
    )
    assert finished.returncode == 5, finished.stderr


def test_nothing_of_ours_is_on_the_path_of_a_python_without_site(lab):
    program = "import sys; print(sys.path)"
    for switches in (["-S"], ["-W", "error", "-sS"]):
        assert_same(lab, *switches, "-c", program)
