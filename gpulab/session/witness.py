"""A process that does nothing: where it gets a signal that came to this one too, all of the process
group, or of the job, got it.

No process can see whom else a signal was sent to: a terminal, `kill -- -GROUP` and timeout(1) send
it to the group, systemd and Slurm to one process after another.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic

from gpulab.proc.spawn import DEVNULL, PIPE, Process, spawn

_PROGRAM = """
import os, select, signal, sys
came_r, came_w = os.pipe()
os.set_blocking(came_w, False)
signal.set_wakeup_fd(came_w, warn_on_full_buffer=False)
for number in sys.argv[1:]:
    signal.signal(int(number), lambda *_: None)
while True:
    ready = select.select([0, came_r], [], [])[0]
    asked = 0 in ready
    if asked and not os.read(0, 1):
        break
    if select.select([came_r], [], [], 0)[0]:
        os.write(1, os.read(came_r, 512))
    if asked:
        os.write(1, b"\\0")
"""


class Witness:
    """A process that notes some signals. It ends with this process, however that ends."""

    def __init__(self, signals: Sequence[signal.Signals]) -> None:
        self._signals = signals
        self._seen: dict[int, float] = {}
        """When a signal was last known to have come to it."""
        self._process = self._started()

    def saw(self, number: int, at: float) -> bool:
        """Return whether a signal that came to this process at a time has come to the witness."""
        process = self._process
        if process is not None:
            self._ask(process)
        if process is None or process.returncode is not None:
            self._process = self._started()
        return self._seen.get(number, 0.0) >= at

    def end(self) -> None:
        """It is not needed any more."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _ask(self, process: Process[bytes]) -> None:
        """Take what came to it before it answers. A signal before it was ready has ended it."""
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):
            os.write(process.stdin.fileno(), b"?")
        until = monotonic() + 3.0
        numbers = b""
        while b"\0" not in numbers:
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, until - monotonic()))
            data = os.read(process.stdout.fileno(), 512) if ready else b""
            if not data:
                process.kill()
                process.communicate()
                numbers += bytes([max(0, -process.returncode)])
                break
            numbers += data
        self._seen |= dict.fromkeys(numbers, monotonic())

    def _started(self) -> Process[bytes] | None:
        """None where no process can be started: then signals are forwarded."""
        python = getattr(sys, "_base_executable", sys.executable)
        numbers = [str(int(number)) for number in self._signals]
        try:
            return spawn(
                [python, "-IS", "-c", _PROGRAM, *numbers],
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                cwd="/",
            )
        except OSError:
            return None
