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
from gpulab.defaults import NAME, tables_in
from gpulab.modes import Mode
from gpulab.options import UsageError, flag_of

DEFAULT_FILE = Path(NAME)
"""In the working directory."""


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
        """UsageError where a table names no scenario that is known."""
        for name in self.scenarios:
            if name not in known:
                raise UsageError(f"{self.path}: [{name}]: there is no scenario of this name")


def thresholds_of(fail_below: Mapping[str, float], fail_if_slower: float | None) -> Thresholds:
    """Return those that the flags of these names give."""
    speedups = {name: least for name, least in fail_below.items() if name}
    return Thresholds(speedup=fail_below.get(""), speedups=speedups, slower=fail_if_slower)


def read_thresholds(path: Path) -> ThresholdFile:
    """UsageError where it cannot be read, or has an entry that is no threshold."""
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
    """Each key is a flag, and takes what that takes; UsageError."""
    values: dict[str, Any] = {"fail_below": {}, "fail_if_slower": None}
    for key, given in table.items():
        if key not in values:
            known = f"{', '.join(values)}, or a [SCENARIO]"
            raise UsageError(f"{where}: {key}: unknown key; write {known}")
        if given == {}:
            continue
        if isinstance(given, dict):
            given = [f"{variant}={least}" for variant, least in given.items()]
        elif key == "fail_below":
            given = [given]
        values[key] = flag_of(key).value(given, f"{where}: {key} = ")
    return thresholds_of(**values)
