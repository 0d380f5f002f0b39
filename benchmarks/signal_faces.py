"""The program in its faces, as a benchmark starts it and sends it signals."""

import os
import subprocess
import termios
import time

from commands import GPULAB
from pseudo_terminal import Pty

from gpulab.core.events import RunEnded
from gpulab.core.run_file import RunFileError, read_run_file

SCENARIO = '''
"""Tiny: two additions."""
import torch
from gpulab import Scenario, Work
scenario = Scenario("tiny")
@scenario.variant
def one(lab):
    """One."""
    data = torch.ones(1 << 10)
    return Work(lambda: data + 1, inputs=data)
@scenario.variant
def two(lab):
    """Another."""
    return one(lab)
def step():
    import subprocess, time
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    time.sleep(0.5)
'''
OPTIONS = ["tiny.py", "--smoke", "--device", "cpu"]
RUN = [*GPULAB, "--run", *OPTIONS, "--output", "run.jsonl", "--json", "out.json"]
GUARD_S = 40.0
"""Within which a program ends: one that is told to stop has thirty seconds."""


def outcome_of(path):
    try:
        last = read_run_file(path).events[-1]
    except (RunFileError, IndexError):
        return None
    return last.outcome if isinstance(last, RunEnded) else None


class Headless:
    """`gpulab --run` with its outputs in files."""

    command = (*RUN,)

    def __init__(self, lab):
        self.lab = lab
        self.files = [(lab.folder / name).open("wb") for name in ("stdout", "stderr")]
        self.process = subprocess.Popen(
            self.command, cwd=lab.folder, env=lab.env, stdin=subprocess.DEVNULL, stdout=self.files[0], stderr=self.files[1],
            process_group=0,
        )  # fmt: skip
        self.pid = self.process.pid

    def pass_time(self, seconds):
        time.sleep(max(0.0, seconds))

    @property
    def ended(self):
        return self.process.poll() is not None

    def end(self):
        return self.process.wait(GUARD_S)

    @property
    def output(self):
        return b"".join((self.lab.folder / name).read_bytes() for name in ("stdout", "stderr"))

    def terminal_problems(self):
        return []


class Try(Headless):
    """`--try` of a fix that does not apply: a look at a step, and its end."""

    command = (*GPULAB, "--run", "tiny.py:step", "--try", "channels_last")


class WhatIf(Headless):
    """`--what-if` of a step without parts."""

    command = (*GPULAB, "--run", "tiny.py:step", "--what-if")


class OnTerminal(Pty):
    """`gpulab --run` on a terminal."""

    command = (*RUN,)

    def __init__(self, lab):
        super().__init__([*self.command], env=lab.env, cwd=lab.folder)
        self.code = None

    def pass_time(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self.ended:
            self.read(min(left, 0.05)) if self.fd is not None else time.sleep(min(left, 0.05))

    @property
    def ended(self):
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is not None

    def end(self):
        end = time.monotonic() + GUARD_S
        while not self.ended:
            if time.monotonic() > end:
                raise TimeoutError
            self.pass_time(0.1)
        if self.fd is not None:
            self.read(0.1)
        return self.code

    def terminal_problems(self):
        if self.fd is None:
            return []
        problems = []
        for name, off, on in (
            ("cursor hidden", b"\x1b[?25l", b"\x1b[?25h"),
            ("screen", b"\x1b[?1049h", b"\x1b[?1049l"),
        ):
            if self.output.rfind(off) > self.output.rfind(on):
                problems.append(name)
        if not termios.tcgetattr(self.fd)[3] & termios.ECHO:
            problems.append("terminal is raw")
        return problems


class App(OnTerminal):
    """The screen, in which a run is started at once, and which is left when the run has ended."""

    command = (*GPULAB, *OPTIONS)

    def __init__(self, lab):
        super().__init__(lab)
        self.lab = lab
        self._due = time.monotonic() + GUARD_S / 2
        self._running = self._leaving = False

    def read(self, seconds, until=None):
        data = super().read(seconds, until)
        if not self._running and b"quit" in self.output:
            self._running = True
            self.press(b"r")
        elif any(map(outcome_of, self.lab.folder.rglob("*.jsonl"))):
            self.leave()
        if time.monotonic() > self._due:
            self._due += 1.0  # what is typed while the terminal changes hands is lost
            self.press(b"q")
        return data

    def leave(self):
        if not self._leaving:
            self._leaving, self._due = True, time.monotonic()
