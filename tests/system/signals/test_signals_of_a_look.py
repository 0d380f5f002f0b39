"""A look at a step of a user's code has its answer, or ends, with all that the code has started."""

import os
import signal
import threading

import msgspec
import pytest
from conftest import GPULAB, wait_for
from pseudo_terminal import Pty
from signal_programs import restored

from gpulab.session import look as looks
from gpulab.session.drive import StoppedError
from gpulab.session.look import Look, LookError

LOOKED_AT = """
    import os, pathlib, signal, subprocess, sys, time

    # one that lasts, holds all pipes, and is in a session of its own
    subprocess.Popen(["sleep", "600"], start_new_session=True, close_fds=False)

    def look(request):
        how = request.decode().strip('"')
        print("printed", flush=True)
        if how == "floods":
            os.write(1, b"x" * 1_000_000)
            return {"value": 1}
        if how == "raises":
            raise RuntimeError("of the step")
        if how == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        pathlib.Path("hangs").touch()
        while True:
            if how == "hangs and prints":
                os.write(1, b"x" * 4096)
"""


class Said(msgspec.Struct):
    value: int


@pytest.fixture
def ask(lab, monkeypatch):
    lab.write("looked_at.py", LOOKED_AT)
    monkeypatch.chdir(lab.folder)
    environment = {**lab.env, "PYTHONPATH": str(lab.folder)}
    return lambda how, look=None: (look or Look()).ask("looked_at", how, environment, Said)


def test_an_answer_waits_for_nobody_that_the_code_has_started(ask, lab):
    assert ask("floods").value
    assert lab.none_left(within=0)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("raises", "RuntimeError: of the step"),
        ("dies", "its process ended with -9: printed"),
    ],
)
def test_why_there_is_no_answer_is_said(ask, lab, how, words):
    with pytest.raises(LookError, match=words):
        ask(how)
    assert lab.none_left(within=0)


def test_a_look_that_is_cancelled_ends_with_all_that_it_started(ask, lab):
    look = Look()
    stops = threading.Thread(
        target=lambda: (wait_for((lab.folder / "hangs").exists), look.cancel())
    )
    stops.start()
    with pytest.raises(StoppedError):
        ask("hangs", look)
    stops.join()
    assert lab.none_left(within=0)
    with pytest.raises(StoppedError):  # it stays so
        ask("floods", look)


def test_a_step_without_end_is_given_up(ask, lab, monkeypatch):
    monkeypatch.setattr(looks, "_LONGEST_S", 1.0)
    with pytest.raises(LookError, match="the step has not ended after 1 s"):
        ask("hangs and prints")
    assert lab.none_left(within=0)


HANGS = """
    import pathlib, subprocess
    subprocess.Popen(["sleep", "600"], start_new_session=True)

    def step():
        pathlib.Path("hangs").touch()
        while True: pass
"""


@pytest.mark.parametrize(
    ("flag", "which"),
    [
        ("--try", signal.SIGTERM),
        *(
            pytest.param(flag, which, marks=pytest.mark.slow)
            for flag in ("--try", "--what-if")
            for which in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL)
        ),
    ],
)
def test_a_signal_ends_the_command_with_the_step_that_it_looks_at(lab, flag, which):
    lab.write("hangs.py", HANGS)
    process = lab.start("--run", "hangs.py:step", flag, "--telemetry", "off")
    wait_for((lab.folder / "hangs").exists)
    process.send_signal(which)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == (-which if which == signal.SIGKILL else 130)
    assert b"Traceback" not in stderr
    assert lab.none_left()


APP_HANGS = """
    import pathlib, time

    def step():
        pathlib.Path("hangs").touch()
        time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [b"q", b"\x03", signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("key", [b"w", b"F"])
def test_the_app_can_be_quit_while_it_looks_at_a_step(lab, key, how):
    file = lab.write("hangs.py", APP_HANGS)
    command = [*GPULAB, str(file), "--telemetry", "off"]
    terminal = Pty(command, size=(110, 30), env=lab.env, cwd=lab.folder)
    terminal.read(60, until=b"quit")
    terminal.read(1)
    terminal.press(key)
    terminal.read(60, until=b"analyzing a step")
    wait_for((lab.folder / "hangs").exists)
    if isinstance(how, bytes):
        terminal.press(how)
    else:
        os.kill(terminal.pid, how)
    assert terminal.end(within=30) == (0 if isinstance(how, bytes) else 130)
    assert restored(terminal)
    assert b"Traceback" not in terminal.output
    assert lab.none_left()
