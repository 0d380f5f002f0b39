"""A doctor's findings: what is there, and below what is not, what it would enable and what mends it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from gpulab.model.machine import Finding
from gpulab.views.text import Glyphs

_STYLES = {"ok": "green", "missing": "yellow", "broken": "bold red"}


def doctor(findings: Sequence[Finding], glyphs: Glyphs) -> Table:
    """A row a finding."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for one in findings:
        told = Text(glyphs(one.found), overflow="fold")
        if one.status != "ok":
            told.append(glyphs(f"\nenables: {one.enables}"), "dim")
            told.append(glyphs(f"\nmend: {one.mend}") if one.mend else "", "bold")
        table.add_row(Text(one.status, _STYLES[one.status]), Text(one.name, "bold"), told)
    return table
