"""A scenario's file in the user's editor."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import termios
import time
from contextlib import nullcontext
from pathlib import Path

from textual.app import App, SuspendNotSupported

from gpulab.proc.spawn import Process, spawn
from gpulab.tui.driver import LabDriver

_ENDED_OR_STOPPED = os.WEXITED | os.WSTOPPED | os.WNOWAIT


def edit(app: App[int], path: Path, line: int | None) -> str | None:
    """Open the file in the editor, at a line where one is known, and come back; the problem where
    there was one.
    """
    chosen = _editor()
    if chosen is None:
        return "no editor: set EDITOR, for instance EDITOR=nano"
    name, command = chosen
    if shutil.which(command[0]) is None:
        is_there = os.path.lexists(command[0])
        return f"{name}: not executable" if is_there else f"{name}: not found"
    at = [f"+{line}"] if line else []
    try:
        with app.suspend():
            problem = _run(app, [*command, *at, str(path)])
    except SuspendNotSupported:
        return "an editor cannot be opened from here: the screen is not on a terminal"
    return f"{name}: {problem}" if problem else None


def _run(app: App[int], command: list[str]) -> str | None:
    """Run the editor; what went wrong. It raises nothing: the app that is suspended is to go on."""
    driver = app._driver
    suspended = driver.suspended() if isinstance(driver, LabDriver) else nullcontext()
    try:
        with suspended, spawn(command) as editor:
            while os.waitid(os.P_PID, editor.pid, _ENDED_OR_STOPPED).si_code == os.CLD_STOPPED:  # type: ignore[union-attr]
                time.sleep(0.05)  # a stop of the whole job is over once this goes on
                if not _is_stopped(editor):
                    continue
                # Stopped alone, it would be waited for unseen; without a shell this does nothing.
                signal.raise_signal(signal.SIGTSTP)
                editor.send_signal(signal.SIGCONT)
    except OSError as error:
        return error.strerror or str(error)
    except termios.error:
        return "the terminal is gone"
    code = editor.returncode
    if code < 0:
        return f"ended by signal {-code}"
    return f"exit code {code}" if code else None


def _is_stopped(editor: Process[bytes]) -> bool:
    try:
        stopped = os.waitid(os.P_PID, editor.pid, os.WSTOPPED | os.WNOWAIT | os.WNOHANG)
    except ChildProcessError:  # it has ended meanwhile, and can stop no more
        return False
    return stopped is not None and stopped.si_code == os.CLD_STOPPED


def _editor() -> tuple[str, list[str]] | None:
    """(what names it, its command)."""
    for name in ("VISUAL", "EDITOR"):
        value = os.environ.get(name, "")
        try:
            if words := shlex.split(value):
                return f"{name}={value}", words
        except ValueError:  # a quote without its end
            continue
    # where neither $VISUAL nor $EDITOR names one
    return next(((name, [name]) for name in ("vi", "nano") if shutil.which(name)), None)
