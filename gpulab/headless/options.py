"""What refines the modes of the command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpulab.core.files import is_appended_to
from gpulab.session.settings import Settings, UsageError

if TYPE_CHECKING:
    from gpulab.core.statuses import GroupBy, SortBy


@dataclass(frozen=True)
class Options(Settings):
    """Named as the command line names them. `json` is a file, or - for stdout."""

    output: Path | None = None
    json: str | None = None
    ascii: bool = False
    verbose: bool = False
    checklist: bool = False
    raw: bool = False
    markdown: bool = False
    plot: Path | None = None
    export: Path | None = None
    fail_below: Sequence[tuple[str, float]] = ()
    """(variant, speedup): what it must reach; an empty name stands for all others."""
    fail_if_slower: float | None = None
    """As a share of the time before."""
    gate: Path | None = None
    """Thresholds of scenarios, in TOML."""
    junit: Path | None = None
    repeat: int | None = None
    """How many times the whole is measured, in fresh processes."""
    try_fixes: str | None = None
    """Names of the fixes of a function to try; empty: every one that applies."""
    what_if: str | None = None
    """Names of a variant and of operations; empty: the first variant, without operations."""
    keep: Path | None = None
    """Where the scenario that tries them is written; or how many runs of each scenario stay."""
    prune: bool = False
    sweep: str | None = None
    """name=a,b,c; or a name, or nothing, for the scenario's own values."""

    what: tuple[str, ...] = ()
    """What two revisions, folders or environments are compared by."""

    ptx: bool = False
    sass: bool = False
    arch: str | None = None
    """Of the kernels to show."""

    exercise: str | None = None
    """Which one is to be written; empty: which there are."""
    solution: bool = False
    """Of the exercise, in its place."""

    listen: str | None = None

    top: int | None = None
    """How many operations of a trace, or of a step."""
    sort: SortBy | None = None
    """The column by which the table of operations is sorted."""
    group_by: GroupBy | None = None
    """What its rows sum."""

    @property
    def asks_for_operations(self) -> bool:
        return any(value is not None for value in (self.top, self.sort, self.group_by))

    def check_files(self) -> None:
        """UsageError where two flags name one file to be written."""
        files = {
            "--output": self.output,
            "--json": self.json_file,
            "--junit": self.junit,
            "--plot": self.plot,
            "--export": self.export,
            "--trace": self.trace,
            "--keep": self.keep if isinstance(self.keep, Path) else None,
        }
        flags: dict[str, str] = {}
        for flag, file in files.items():
            try:
                if file is None or is_appended_to(file):
                    continue
            except OSError:  # who writes it says why not
                continue
            first = flags.setdefault(os.path.realpath(file), flag)
            if first != flag:
                raise UsageError(f"{first} and {flag} name one file: {file}")

    @property
    def json_on_stdout(self) -> bool:
        return self.json == "-"

    @property
    def json_file(self) -> Path | None:
        return Path(self.json) if self.json and not self.json_on_stdout else None


def refuse_others(flag: str, options: Options, *, params: bool) -> None:
    """UsageError for flags that make no sense with this one; `params`: whether --set does."""
    others = {
        "--sweep": options.sweep is not None,
        "--repeat": options.repeat is not None,
        "--fail-below": bool(options.fail_below),
        "--gate": options.gate is not None,
        "--junit": options.junit is not None,
        "--plot": options.plot is not None,
        "--export": options.export is not None,
        "--trace": options.trace is not None,
        "--from-start": options.from_start is not None,
        "--set": bool(options.chosen) and not params,
    }
    for other, given in others.items():
        if given:
            raise UsageError(f"{flag} and {other}: one or the other")
