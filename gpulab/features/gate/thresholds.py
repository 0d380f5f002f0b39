"""What a gate demands: by flags, or by a file such as gpulab.toml.

fail_if_slower = "3%"           # of every scenario whose table says nothing else

[my_step]
fail_below = 1.2                # of every variant, or of some: { fused = 1.5, graphed = 2 }
fail_if_slower = "5%"
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from gpulab.core.jobs import Required
from gpulab.core.limits import SPEEDUPS
from gpulab.defaults import NAME, tables_in
from gpulab.modes import Mode
from gpulab.scenario import shown

DEFAULT_FILE = Path(NAME)
"""In the working directory."""
_FAIL_BELOW, _FAIL_IF_SLOWER = "fail_below", "fail_if_slower"


class ThresholdError(ValueError):
    """A file of thresholds has an entry that is none; the text names the file and the entry."""


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """The thresholds of one scenario. `speedup` of every variant, `speedups` of some, by their
    names; `slower` as a share. None demands nothing.
    """

    speedup: float | None = None
    speedups: dict[str, float] = {}
    slower: float | None = None

    @property
    def required(self) -> Required:
        """Return what the comparisons of one run must reach."""
        return Required(every=self.speedup, variants=self.speedups)

    def over(self, other: Thresholds) -> Thresholds:
        """These, and where they say nothing the other ones."""
        own = self.speedup is not None or self.speedups
        return Thresholds(
            speedup=self.speedup if own else other.speedup,
            speedups=self.speedups if own else other.speedups,
            slower=other.slower if self.slower is None else self.slower,
        )


class ThresholdFile(msgspec.Struct, frozen=True, kw_only=True):
    """Thresholds of all scenarios, and of those that have a table of their own."""

    path: str = ""
    common: Thresholds = Thresholds()
    scenarios: dict[str, Thresholds] = {}

    def of(self, scenario: str) -> Thresholds:
        return self.scenarios.get(scenario, Thresholds()).over(self.common)

    def check(self, known: Collection[str]) -> None:
        """ThresholdError where a table names no scenario that is known."""
        for name in self.scenarios:
            if name not in known:
                raise ThresholdError(f"{self.path}: [{name}]: there is no scenario of this name")


def read_thresholds(path: Path) -> ThresholdFile:
    """ThresholdError of what is in it; UsageError where it cannot be read."""
    modes = [mode.lstrip("-") for mode in Mode] + ["screen"]  # whose tables are defaults of flags
    tables = {name: table for name, table in tables_in(path).items() if name not in modes}
    scenarios = {name: table for name, table in tables.items() if isinstance(table, dict)}
    common = {name: value for name, value in tables.items() if name not in scenarios}
    return ThresholdFile(
        path=str(path),
        common=_thresholds(common, str(path)),
        scenarios={
            name: _thresholds(table, f"{path}: [{name}]") for name, table in scenarios.items()
        },
    )


def _thresholds(table: Mapping[str, Any], where: str) -> Thresholds:
    unknown = [name for name in table if name not in (_FAIL_BELOW, _FAIL_IF_SLOWER)]
    if unknown:
        known = f"{_FAIL_BELOW}, {_FAIL_IF_SLOWER}, or a [SCENARIO]"
        raise ThresholdError(f"{where}: {unknown[0]}: unknown key; write {known}")
    below = table.get(_FAIL_BELOW)
    speedups = below if isinstance(below, dict) else {}
    speedup = None if isinstance(below, dict) or below is None else below
    slower = table.get(_FAIL_IF_SLOWER)
    return Thresholds(
        speedup=None if speedup is None else _speedup(speedup, f"{where}: {_FAIL_BELOW}"),
        speedups={
            name: _speedup(value, f"{where}: {_FAIL_BELOW}.{name}")
            for name, value in speedups.items()
        },
        slower=None if slower is None else _share(slower, f"{where}: {_FAIL_IF_SLOWER}"),
    )


def _speedup(value: Any, where: str) -> float:
    number = as_speedup(value)
    if number is None:
        raise ThresholdError(f"{where} = {shown(value)}: write a speedup, such as 1.2")
    return number


def _share(value: Any, where: str) -> float:
    number = as_share(value)
    if number is None:
        raise ThresholdError(f'{where} = {shown(value)}: write a share, such as "3%"')
    return number


def as_speedup(value: Any) -> float | None:
    """1.2 or "1.2x" as a speedup; None where it is none."""
    number = _number(value.removesuffix("x") if isinstance(value, str) else value)
    if number is None or not SPEEDUPS[0] <= number <= SPEEDUPS[1]:
        return None
    return number


def as_share(value: Any) -> float | None:
    """ "3%" or 0.03 as a share; None where it is none from 0 to 100 %."""
    if isinstance(value, str) and value.endswith("%"):
        number = _number(value.removesuffix("%"))
        share = None if number is None else number / 100
    else:
        share = _number(value)
    return share if share is not None and 0 <= share < 1 else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
