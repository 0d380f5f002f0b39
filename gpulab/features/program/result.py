"""A program that was followed: its part of the report."""

from __future__ import annotations

from typing import Any

import msgspec

from gpulab.features.program.events import StepMark


class FollowedReport(msgspec.Struct, frozen=True, kw_only=True):
    """One process of a program that was followed: its steps, and the median of their windows."""

    pid: int
    rank: int | None = None
    """By its variable RANK; None where it has none."""
    python: str = ""
    torch: str | None = None
    mark: StepMark | None = None
    """What ends its steps; None where it had none."""
    steps: int = 0
    step_s: float | None = None


class ProgramReport(msgspec.Struct, frozen=True, kw_only=True):
    """A program that was started as it is, and the steps of the process that counts: the lowest
    rank's, or else the one with most of them.

    Times of steps are of windows without the profiler. `loop_s` is the
    time of the steps but for the first, with what is between them; `following_s` is what following
    added to it: what the profiler added to the steps of its windows, which took `recorded_s`, and
    starting and exporting recordings.
    """

    argv: list[str]
    folder: str
    code: int | None = None
    """Its exit code; None where a signal ended it, or while it runs."""
    signal: int | None = None
    wall_s: float | None = None
    user_s: float | None = None
    system_s: float | None = None
    resident_bytes: int | None = None
    """The largest resident set of one of its processes."""
    left: int = 0
    """Processes of it that went on."""
    mark: StepMark | None = None
    steps: int = 0
    """All of that process, the first and those under the profiler included."""
    first_step_s: float | None = None
    """From the start of the program to the end of the first step."""
    recorded_s: float = 0.0
    following_s: float = 0.0
    loop_s: float = 0.0
    peak_bytes: int | None = None
    """Of device memory that torch had allocated."""
    kinds: dict[str, int] = {}
    """How many of the steps did what, the most frequent first."""
    mixed: bool = False
    """Whether the time of a step is a mean over steps of several kinds: no window had one kind."""
    processes: list[FollowedReport] = []
    ranks: Any = None
    """A `JobReport`: who is late. None of a program without collectives of several ranks."""


class RunPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run's report about a followed program."""

    program: ProgramReport | None = None
    """The program that was followed; None of every other run."""
