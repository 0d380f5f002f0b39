"""A saved run that is played again: a source with a clock of its own, which somebody stops, moves
and lets run faster.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from pathlib import Path
from time import monotonic

from gpulab.catalog.todays import with_todays_text
from gpulab.core.events import Event, ProcessStarted, RunStarted, StageStarted, WorkerReady
from gpulab.core.findings import Finding
from gpulab.core.run_file import RunFileError, read_run_file
from gpulab.core.statuses import Stage

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, inf)
"""The last one goes to the end at once."""
_VARIANT_STAGES = (Stage.BUILD, Stage.WARM_UP)
_STAGES = (
    Stage.LOAD,
    *_VARIANT_STAGES,
    Stage.MEASURE,
    Stage.SOLO_RUN,
    Stage.RE_CHECK,
    Stage.CEILINGS,
    Stage.PROFILE,
)
"""Those that are gone to. The others are a part of what comes before them, and short."""


@dataclass(frozen=True)
class StageMark:
    """The beginning of a stage of the run, in seconds from its start."""

    at_s: float
    name: str
    first: bool
    """Of its kind: not a later variant's, or process's."""


class Playback:
    """A Source. It plays from the start; RunFileError, OSError as of `read_run_file`.

    Where a method returns True all is given again, from the first event on, and has to be folded
    anew: the position is before what was taken, or the run had ended.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = monotonic) -> None:
        recording = read_run_file(path)
        self.path = path
        self.findings: Sequence[Finding] = recording.findings
        self._events = with_todays_text(path, recording.events)
        started = next((e for e in self._events if isinstance(e, RunStarted)), None)
        if started is None:
            raise RunFileError(f"{path} has no beginning: nothing of it can be replayed")
        self.started = started
        self.ready = next((e for e in self._events if isinstance(e, WorkerReady)), None)
        self._start = self._events[0].t
        # one that was sent late is taken with those before which it stands
        latest = accumulate((event.t for event in self._events), max)
        self._due_s = [max(0.0, t - self._start) for t in latest]
        self.duration_s = self._due_s[-1]
        self.marks = list(_marks(self._events, self._due_s))
        self.speed = 1.0
        self.playing = True
        self._clock = clock
        self._since = clock()
        self._from_s = 0.0
        """Where it was then."""
        self._taken = 0

    @property
    def ended(self) -> bool:
        return self._taken == len(self._events)

    @property
    def moved(self) -> tuple[float, float, float, bool]:
        """Return what is another after somebody has moved, paused or hurried it."""
        return self._since, self._from_s, self.speed, self.playing

    @property
    def position_s(self) -> float:
        """Return the position in the run, in seconds from its start."""
        if not self.playing:
            return self._from_s
        if self.speed == inf:
            return self.duration_s
        passed_s = (self._clock() - self._since) * self.speed
        return min(self.duration_s, self._from_s + passed_s)

    @property
    def at_end(self) -> bool:
        return self.position_s >= self.duration_s

    @property
    def stage(self) -> str:
        """The one that it is in."""
        place = bisect_right(self.marks, self.position_s, key=lambda mark: mark.at_s)
        return self.marks[place - 1].name if place else ""

    def take(self) -> list[Event]:
        position_s = self.position_s
        before, self._taken = self._taken, bisect_right(self._due_s, position_s)
        if position_s >= self.duration_s:
            self._hold(position_s)
        return self._events[before : self._taken]

    def now(self) -> float:
        return self._start + self.position_s

    def toggle(self) -> bool:
        """Pause, or go on; at the end from the start."""
        if self.playing and not self.at_end:
            self._hold(self.position_s)
            return False
        again = self.at_end and self.seek(0.0)
        self._since = self._clock()
        self.playing = True
        return again

    def change_speed(self, by: int) -> None:
        """The next of the speeds, or the one before."""
        position_s = self.position_s
        place = SPEEDS.index(self.speed) + by
        self.speed = SPEEDS[min(max(0, place), len(SPEEDS) - 1)]
        self._from_s = position_s
        self._since = self._clock()

    def seek(self, position_s: float) -> bool:
        """Go to a time; it plays on from there, or stays paused."""
        self._from_s = min(max(0.0, position_s), self.duration_s)
        self._since = self._clock()
        if bisect_right(self._due_s, self._from_s) >= self._taken and not self.ended:
            return False
        self._taken = 0
        return True

    def skip_to_measuring(self) -> None:
        """Go to where the first process measures: what comes before is taken at once."""
        starts = [mark.at_s for mark in self.marks if mark.name == f"{Stage.MEASURE} 1"]
        if starts:
            self.seek(starts[0])

    def seek_stage(self, by: int) -> bool:
        """Go to where the next stage begins (1), or to the beginning of this one, or of the one
        before (-1).
        """
        position_s = self.position_s
        starts = [mark.at_s for mark in self.marks]
        if by > 0:
            place = bisect_right(starts, position_s)
            return self.seek(starts[place] if place < len(starts) else self.duration_s)
        if self.playing:
            # while it plays, a stage that began within a second is not the one before
            position_s -= min(self.speed, SPEEDS[-2])
        place = bisect_left(starts, position_s)
        return self.seek(starts[place - 1] if place else 0.0)

    def go_on_from(self, position_s: float, speed: float, *, playing: bool) -> bool:
        """Play as somebody else does, from there."""
        again = self.seek(position_s)
        self.speed = min(SPEEDS[:-1], key=lambda known: abs(known - speed))
        self.playing = playing
        return again

    def step(self) -> None:
        """Pause, and go on by the next events: those that came together."""
        self._hold(self.position_s)
        next_one = bisect_right(self._due_s, self._from_s)
        if next_one < len(self._due_s):
            # events of a run come in batches, at most ten a second
            last = bisect_right(self._due_s, self._due_s[next_one] + 0.1) - 1
            self._from_s = self._due_s[last]

    def _hold(self, position_s: float) -> None:
        self.playing = False
        self._from_s = position_s


def _marks(events: Sequence[Event], due_s: Sequence[float]) -> Iterator[StageMark]:
    """Each stage once: builds and warm-ups of every variant, measuring of every process."""
    stage = Stage.START
    last = ""
    kinds = {stage}
    for event, at_s in zip(events, due_s, strict=True):
        name = ""
        if isinstance(event, StageStarted) and event.stage in _STAGES:
            stage = event.stage
            name = str(stage)
            if stage in _VARIANT_STAGES and event.variant:
                name += f" {event.variant}"
            if stage == Stage.MEASURE:
                name += " 1"
        elif isinstance(event, ProcessStarted) and stage == Stage.MEASURE:
            name = f"{stage} {event.process + 1}"
        if name and name != last:
            last = name
            yield StageMark(at_s, name, first=stage not in kinds)
            kinds.add(stage)
