"""The checks of a machine: what is there, and below what is not, what it would enable and what
fixes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.machine import CheckStatus, MachineCheck
from gpulab.core.text import one_line
from gpulab.draw.blocks import Table, Text, rows_table

_STYLES = {CheckStatus.OK: "green", CheckStatus.MISSING: "yellow", CheckStatus.BROKEN: "bold red"}


def doctor(checks: Sequence[MachineCheck]) -> Table:
    """A row a check."""
    table = rows_table()
    for check in checks:
        text = Text(one_line(check.result), overflow="fold")
        if check.enables:
            text.append(f"\nenables: {check.enables}", "dim")
        if check.fix:
            text.append(f"\nfix: {one_line(check.fix)}", "bold")
        table.add_row(Text(check.status, _STYLES[check.status]), Text(check.name, "bold"), text)
    return table
