"""A signal at any moment of the app ends it with its run, and gives the terminal back; so does a
crash.
"""

import fcntl
import os
import signal
import struct
import termios
import time

import pytest
from conftest import wait_for
from program import SCENARIO
from signal_programs import PROGRAM, RUN, app, outcome_of, restored


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "which"),
    [
        ("START", signal.SIGINT),
        ("MEASURE", signal.SIGHUP),
        ("IDLE", signal.SIGTERM),
        ("PROFILE", signal.SIGQUIT),
    ],
)
def test_a_signal_ends_the_app_and_its_run(lab, stage, which):
    terminal, file = app(lab, stage)
    os.kill(terminal.pid, which)
    assert terminal.end() == 130
    assert restored(terminal)
    assert b"Traceback" not in terminal.output
    assert file is None or outcome_of(file) == "cancelled"
    assert lab.none_left()


@pytest.mark.slow
@pytest.mark.parametrize("on_hang_up", ["SIG_DFL", "SIG_IGN"])
def test_a_terminal_that_goes_away_ends_the_app_and_its_run(lab, on_hang_up):
    """Also where SIGHUP is ignored, as under nohup."""
    terminal, file = app(
        lab, "MEASURE", f"import signal; signal.signal(signal.SIGHUP, signal.{on_hang_up})"
    )
    terminal.hang_up()
    assert terminal.end() == 130
    assert outcome_of(file) == "cancelled"
    assert lab.none_left()


CRASH = "from gpulab.tui.screens.lab import LabScreen; LabScreen.action_stop = lambda screen: 1 / 0"


def test_a_crash_is_shown_and_is_no_success(lab):
    terminal, file = app(lab, "MEASURE", CRASH)
    terminal.press(b"s")
    assert terminal.end() == 1
    assert restored(terminal)
    assert b"ZeroDivisionError" in terminal.output[terminal.output.rindex(b"\x1b[?1049l") :]
    assert outcome_of(file) == "cancelled"
    assert lab.none_left()


def shell_command(lab, *arguments):
    lab.write("waits.py", SCENARIO)
    return " ".join([*PROGRAM, *arguments, "--set", "wait=MEASURE"]) + "; echo code $?"


def pid_of(lab):
    (pid,) = [pid for pid, command in lab.processes().items() if b"program.py" in command]
    return pid


def test_ctrl_z_gives_the_shell_its_cursor_and_the_run_goes_on(lab, tmux):
    tmux.press(shell_command(lab, *RUN, "run.jsonl"), "Enter")
    tmux.until("MEASURE preparing")
    tmux.press("C-z")
    tmux.until("Stopped")
    assert tmux.flags() == ["1", "0"]
    tmux.press("clear; fg; echo code $?", "Enter")
    tmux.until("MEASURE preparing")
    tmux.press("C-c")
    assert "Traceback" not in tmux.until("code 130")
    assert tmux.flags() == ["1", "0"]
    assert outcome_of(lab.folder / "run.jsonl") == "cancelled"


def test_an_app_that_is_stopped_gives_the_terminal_to_the_shell_and_takes_it_again(lab, tmux):
    """A whole visit by keys alone, with nothing that imports torch."""
    tmux.press("echo before", "Enter")
    tmux.until("before")
    tmux.press(shell_command(lab, "waits.py", "--device", "cpu", "--telemetry", "off"), "Enter")
    tmux.until("r run")
    screen = tmux.until("cold_start")
    topics = [screen.index(topic) for topic in ("1. Profile first", "2. Quick wins")]
    assert topics == sorted(topics)
    tmux.press("Down", "Enter")
    tmux.until("Cold start")
    tmux.press("Escape", "Up", "r")
    tmux.until("MEASURE preparing")
    os.kill(pid_of(lab), signal.SIGTSTP)
    tmux.until("Stopped")
    assert tmux.flags() == ["1", "0"]
    tmux.press("clear; fg; echo code $?", "Enter")
    tmux.until("MEASURE preparing")
    assert tmux.flags()[1] == "1"
    tmux.press("s", "s")
    tmux.until("interrupted")
    tmux.press("q")
    screen = tmux.until("code 0")
    assert "Profile first" not in screen
    assert tmux.flags() == ["1", "0"]
    (file,) = (lab.folder / "state").rglob("runs/*.jsonl")
    assert outcome_of(file) == "cancelled"


SHORT = (
    "from gpulab.session import drive; drive.Interrupts.__init__.__defaults__ = (drive.SIGNALS, 1)"
)


@pytest.mark.slow
def test_a_terminal_that_takes_no_output_keeps_neither_the_run_nor_the_process(lab):
    terminal, file = app(lab, "MEASURE", SHORT)
    for number in range(60):  # every new size is drawn, and nobody reads it
        fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24 + number % 2, 80, 0, 0))
        time.sleep(0.02)
    os.kill(terminal.pid, signal.SIGTERM)
    wait_for(lambda: outcome_of(file) == "cancelled", within=20)
    wait_for(lambda: not lab.processes(), within=20)
    assert terminal.end() in (130, -signal.SIGALRM)  # 130 where the last bytes still found room
