"""The line that says of a replay how far it is, and what was recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from gpulab.core.machine import Device
from gpulab.draw.canvas import fit, wide

_LEAST_BAR = 12
_BAR_SHARE = 6
"""Of the width, the bar has a sixth before more is said of what was recorded."""
_STATE_AND_SPEED = wide("playing 1/4x ")
_SHORTEST_STAGE, _LONGEST_STAGE = 10, 28
_LEAST_FOR_ALL = 40
"""Cells of a bar that has room for the stages of every variant and process."""
_VENDOR = "NVIDIA "
_SEPARATOR = "  "


@dataclass(frozen=True)
class Origin:
    """The place and time at which a run was made."""

    device: Device | None
    environment: Mapping[str, str | None]
    at: str
    """UTC, ISO 8601."""

    @property
    def day(self) -> str:
        return self.at.partition("T")[0]

    def versions(self, *names: str) -> list[str]:
        """Return the versions of the packages that are known."""
        versions = [(name, self.environment.get(name)) for name in names]
        return [f"{name} {version}" for name, version in versions if version]


def made_on(origin: Origin) -> str:
    """The device, the versions and the day of a run."""
    device = origin.device.name if origin.device else ""
    versions = origin.versions("torch", "driver", "gpulab")
    return " · ".join(part for part in (device, *versions, origin.day) if part)


@dataclass(frozen=True)
class ReplayPosition:
    """The position of a replay, in seconds from the start of the run. `marks`: where stages begin,
    and whether each is the first of its kind.
    """

    at_s: float
    duration_s: float
    marks: Sequence[tuple[float, bool]]
    stage: str
    speed: float
    playing: bool


def replay_line(position: ReplayPosition, origin: Origin, width: int) -> str:
    """One line: whether it plays, its speed and time, a bar with the stages; and that it is a
    replay of what, on which day, as long as there is room. Each part has a place that stays.
    """
    head = " ".join((_state(position), shown_speed(position.speed), _times(position)))
    cells_of_head = _STATE_AND_SPEED + 2 * wide(clock_time(position.duration_s)) + 1
    head = head.ljust(cells_of_head)
    stage_cells = min(_LONGEST_STAGE, width // 6)
    stage = ""
    if stage_cells >= _SHORTEST_STAGE:
        stage = _SEPARATOR + _padded(position.stage, stage_cells)
    room = width - cells_of_head - wide(stage) - 2 * len(_SEPARATOR)
    least_bar = max(_LEAST_BAR, width // _BAR_SHARE)
    labels = _labels(origin)
    label = next(
        (label for label in labels if wide(label) + least_bar <= room),
        fit(labels[-1], max(1, room - _LEAST_BAR)),
    )
    bar = _bar(position, max(1, room - wide(label)))
    return f"{head}{_SEPARATOR}{bar}{stage}{_SEPARATOR}{label}"


def shown_speed(speed: float) -> str:
    if speed == inf:
        return "instant"
    return f"{speed:.0f}x" if speed >= 1 else f"1/{1 / speed:.0f}x"


def clock_time(seconds: float) -> str:
    """1:05, or 1:02:05."""
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _padded(text: str, cells: int) -> str:
    text = fit(text, cells)
    return text + " " * (cells - wide(text))


def _state(position: ReplayPosition) -> str:
    if position.playing:
        return "playing"
    return "ended" if position.at_s >= position.duration_s else "paused"


def _times(position: ReplayPosition) -> str:
    return f"{clock_time(position.at_s)}/{clock_time(position.duration_s)}"


def _bar(position: ReplayPosition, cells: int) -> str:
    """Heavy up to where it is; a stage begins at each cross."""
    whole_s = position.duration_s or 1.0
    at = min(cells - 1, int(position.at_s / whole_s * cells))
    begins = {
        min(cells - 1, int(mark_s / whole_s * cells))
        for mark_s, first in position.marks
        if first or cells > _LEAST_FOR_ALL
    }
    parts = []
    for cell in range(cells):
        if cell == at:
            parts.append("●")
        elif cell in begins:
            parts.append("┼")
        else:
            parts.append("━" if cell < at else "─")
    return "".join(parts)


def _labels(origin: Origin) -> list[str]:
    """That it is a replay, and of what: all that is known, then less and less."""
    device = origin.device
    short = ""
    if device is not None:
        short = device.name.removeprefix(_VENDOR) if device.on_gpu else "CPU"
    torch = "".join(origin.versions("torch")).partition("+")[0]
    shorter = ((short, torch, origin.day), (short, origin.day), (origin.day,))
    lists = [", ".join(part for part in parts if part) for parts in shorter]
    return [f"replay · {made_on(origin)}", *(f"replay {text}" for text in lists)]
