"""The two probes: torch and the driver's library, each asked in a process of its own, which may hang or die."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar

import msgspec

from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.machine import DriverProbe, TorchProbe
from gpulab.protocol.text import plain
from gpulab.session.interrupts import Interrupts

TORCH_PROBE = (sys.executable, "-P", "-m", "gpulab.worker.probe")
DRIVER_PROBE = (sys.executable, "-P", "-m", "gpulab.telemetry.probe")
TIMEOUT_S = 120.0
Answer = TypeVar("Answer", TorchProbe, DriverProbe)


class ProbeError(Exception):
    """No answer came."""

    def __init__(self, reason: Finding) -> None:
        super().__init__(reason.code)
        self.reason = reason


def probe_torch(command: Sequence[str] = TORCH_PROBE, timeout_s: float = TIMEOUT_S) -> TorchProbe:
    """What torch makes of the machine; the lack of an answer is one too."""
    try:
        return _answer(command, timeout_s, TorchProbe)
    except ProbeError as error:
        return TorchProbe(problem=error.reason)


def probe_driver(command: Sequence[str] = DRIVER_PROBE, timeout_s: float = TIMEOUT_S) -> DriverProbe:
    """What the driver's own library reports; the lack of an answer is one too."""
    try:
        return _answer(command, timeout_s, DriverProbe)
    except ProbeError as error:
        return DriverProbe(problem=error.reason)


def _answer(command: Sequence[str], timeout_s: float, answer_type: type[Answer]) -> Answer:
    try:
        return msgspec.json.decode(_output_of(command, timeout_s), type=answer_type)
    except OSError as error:
        raise ProbeError(finding("probe_failed", message=str(error))) from None
    except msgspec.DecodeError as error:
        raise ProbeError(finding("probe_unreadable", message=str(error))) from None


def _output_of(command: Sequence[str], timeout_s: float) -> bytes:
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        # Files, not pipes: a process that hangs in a driver survives even KILL, and must not be waited for.
        with Interrupts() as interrupts:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
            interrupts.stop_with(process.kill)
            try:
                code = process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(1.0)
                raise ProbeError(finding("probe_hangs", timeout_s=timeout_s)) from None
        output.seek(0)
        errors.seek(0)
        if code:
            last_line = plain(errors.read().decode(errors="replace").strip().rpartition("\n")[2])
            raise ProbeError(finding("probe_ended", code=code, message=last_line))
        return output.read()
