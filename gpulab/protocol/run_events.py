"""The frame of a run: its beginning, its worker, its failures, what was printed, and its end."""

from __future__ import annotations

import msgspec

from gpulab.protocol.device import Device
from gpulab.protocol.event import Event
from gpulab.protocol.finding import Finding
from gpulab.protocol.jobs import RunRequest
from gpulab.protocol.statuses import FailureKind, Outcome, Stage
from gpulab.protocol.values import Count, Line, Name, PositiveAmount, SignalNumber, Text

PIPE_LOST, DEVICE_LOST = 97, 98
"""Exit codes of a worker whose event pipe was taken from it, and of one whose device is in error for good."""


class RunStarted(Event, frozen=True):
    """Written by the session before anything runs. `at` is UTC, ISO 8601."""

    request: RunRequest
    at: Name
    host: Line


class PastSpeedups(msgspec.Struct, frozen=True, kw_only=True):
    """What earlier runs gave for one comparison, the oldest first."""

    variant: Name
    against: Name
    speedups: list[PositiveAmount]


class EarlierRuns(Event, frozen=True):
    """Said by the session: runs on this machine of the same file with the same parameters, device and versions."""

    comparisons: tuple[PastSpeedups, ...]


class WorkerReady(Event, frozen=True):
    """The worker has its device. `environment` holds versions; None where something is not installed."""

    pid: Count
    device: Device
    environment: dict[Name, Line | None]


class StageStarted(Event, frozen=True):
    """`detail` is what a stage without variants is at, such as the roof that is measured."""

    stage: Stage
    variant: Name | None = None
    detail: Line | None = None


class VariantFailed(Event, frozen=True):
    """`variant` None: the whole run. `line` is in the scenario's file."""

    variant: Name | None
    kind: FailureKind
    stage: Stage
    cause: Finding
    line: Count | None = None
    traceback: Text = ""


class Log(Event, frozen=True):
    """Lines that the scenario wrote to stdout or stderr, made safe to show."""

    lines: list[Line]
    skipped: Count = 0
    """Lines left out just before these: the log has its first and its last KEPT_LINES."""


class Noticed(Event, frozen=True):
    """Something the reader of the result must know. `explains`: it weakens nothing."""

    finding: Finding
    explains: bool = False


class WorkerExited(Event, frozen=True):
    """The supervisor's last word: how the worker ended, where it was, and what faulthandler wrote."""

    code: Count | None
    signal: SignalNumber | None
    stage: Stage
    variant: Name | None
    trace: Text = ""
    orphans: Count = 0
    """Processes that the worker left running, and that were killed."""
    sent: Count | None = None
    """Events that the worker sent: no more can have come."""


class WorkerDone(Event, frozen=True):
    """The worker did its whole job; `sent` counts its events before this one."""

    sent: Count


class RunInvalid(Event, frozen=True):
    """What makes the whole run no evidence, whatever was measured: none of its verdicts holds."""

    reason: Finding


class RunEnded(Event, frozen=True):
    outcome: Outcome
