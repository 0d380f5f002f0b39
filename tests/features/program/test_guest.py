"""A program that is followed is as it is alone, where files cannot be written, and when a signal
comes from outside. What programs do by themselves is in tests/following.
"""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

_FLAGS = ("--run", "--telemetry", "off")
PIPES = """
    import os

    folder = os.environ.get("GPULAB_FOLLOW", ".")
    os.mkfifo(folder + "/1-a.jsonl")
    os.symlink("/dev/zero", folder + "/2-a.jsonl")
    os.mkdir(folder + "/3-a.start")
    print("made")
"""
HANDLER = """
    import signal, sys, time

    number, seconds = int(sys.argv[1]), float(sys.argv[2])
    saved = []

    def save(*_):
        saved.append(number)
        time.sleep(0.3)

    signal.signal(number, save)
    print("ready", flush=True)
    last = time.monotonic() + seconds
    while time.monotonic() < last:
        time.sleep(0.05)
    print(len(saved))
    sys.exit(7)
"""


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


@pytest.mark.parametrize("mode", ["--list", "--history"])
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
