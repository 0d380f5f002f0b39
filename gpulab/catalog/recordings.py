"""Recorded runs that ship, by the scenarios that they are of."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gpulab.core.files import PACKED

RECORDINGS = Path(__file__).parents[1] / "recordings"
"""A folder for each device, in it a packed run file for each lesson."""
_SUFFIX = f".jsonl{PACKED}"


def recording(name: str) -> Path | None:
    """The recording of a scenario, by NAME or DEVICE/NAME."""
    device, _, scenario = name.rpartition("/")
    found = _recordings_by_name().get(scenario, ())
    return next((path for path in found if device in ("", path.parent.name)), None)


def recordings() -> list[Path]:
    """All that ship."""
    return sorted(RECORDINGS.glob(f"*/*{_SUFFIX}"))


def recorded_name(path: Path) -> str:
    """The scenario of a recording."""
    return path.name.removesuffix(_SUFFIX)


def recorded_on(path: Path) -> str:
    """The kind of device of a recording."""
    return path.parent.name.upper()


@cache
def _recordings_by_name() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in recordings():
        found.setdefault(recorded_name(path), []).append(path)
    return found
