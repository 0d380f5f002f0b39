"""Programs that are about to get a signal, at a stage of their run that they do not leave by
themselves.
"""

import fcntl
import os
import signal
import subprocess
import sys
import termios
from pathlib import Path

import program
from conftest import wait_for
from pseudo_terminal import Pty

from gpulab.core.run_file import RunFileError, read_run_file

PROGRAM = [sys.executable, program.__file__]
RUN = ["--run", "waits.py", "--device", "cpu", "--telemetry", "off", "--output"]
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
STAGES = {
    "LOAD": b'"type":"RunStarted"',
    "MEASURE": b'"stage":"measure"',
    "PROFILE": b'"stage":"profile"',
}
HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"


def events_of(path):
    """The events that are in a run file by now."""
    try:
        return read_run_file(path).events
    except (OSError, RunFileError):
        return []


def outcome_of(path):
    """How the run ended that a file holds, by its last event; None where it has no end."""
    events = events_of(path)
    return getattr(events[-1], "outcome", None) if events else None


def is_at(path, stage):
    return path.exists() and STAGES[stage] in path.read_bytes()


def headless(lab, stage, name="run", **options):
    """`gpulab --run` with pipes, and its run file, once it is at that stage."""
    lab.write("waits.py", program.SCENARIO)
    process = subprocess.Popen(
        [*PROGRAM, *RUN, f"{name}.jsonl", "--set", f"wait={stage}", "--json", f"{name}.json"],
        **{
            "cwd": lab.folder,
            "env": lab.env,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **options,
        },
    )
    return process, lab.folder / f"{name}.jsonl"


def on_terminal(lab, stage, set_up=""):
    """The same on a terminal."""
    lab.write("waits.py", program.SCENARIO)
    command = [*PROGRAM, *RUN, "run.jsonl", "--set", f"wait={stage}"]
    return Pty(command, env={**lab.env, "SET_UP": set_up}, cwd=lab.folder), lab.folder / "run.jsonl"


def app(lab, stage, set_up=""):
    """The screen with a run that is at that stage, or with none; and the run file."""
    lab.write("waits.py", program.SCENARIO)
    command = [
        *PROGRAM,
        "waits.py",
        "--device",
        "cpu",
        "--telemetry",
        "off",
        "--set",
        f"wait={stage}",
    ]
    terminal = Pty(command, env={**lab.env, "SET_UP": set_up}, cwd=lab.folder)
    terminal.read(20, until=b"\x1b[?1049h" if stage == "START" else b"quit")
    if stage in ("START", "IDLE"):
        return terminal, None
    terminal.read(1)  # until the rest of the screen is there
    terminal.press(b"r")
    return terminal, at_stage(
        terminal, lambda: next((lab.folder / "state").rglob("runs/*.jsonl"), Path("none")), stage
    )


def at_stage(terminal, file, stage):
    """The run file, while the terminal is read until the run is at that stage."""

    def arrived():
        terminal.read(0.05)
        return is_at(file(), stage)

    wait_for(arrived, within=30)
    return file()


def restored(terminal):
    """Whether the cursor, the usual screen and the settings of the terminal are back, once its
    program has ended.
    """
    screen = terminal.output.rfind(b"\x1b[?1049l") >= terminal.output.rfind(b"\x1b[?1049h")
    cursor = terminal.output.rfind(SHOW) >= terminal.output.rfind(HIDE)
    return (
        screen
        and cursor
        and bool(terminal.settings[3] & termios.ECHO and terminal.settings[3] & termios.ICANON)
    )


def full_pipe():
    """The ends of a pipe that takes no further byte."""
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
    os.write(write_end, bytes(4096))
    return read_end, write_end
