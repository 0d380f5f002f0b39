"""The GPUs of a machine as a table: alone, together, and what the others cost each."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.core.units import seconds
from gpulab.draw.table import columns_table
from gpulab.features.devices.report import DeviceCost

_MOST_ROWS = 16
_LITTLE = 0.01
_FEW = 0.5
"""Less of the rounds at once says little about what the others cost."""


def device_costs(entries: Sequence[DeviceCost], *, verbose: bool = False) -> RenderableType:
    """A row for each GPU and variant; where these are many, and not `verbose`, the variant of each
    GPU that the others cost most.
    """
    if not entries:
        return Text("nothing was measured", "bold red")
    count = sum(entry.variant == entries[0].variant for entry in entries)
    shown = [entry for entry in entries if entry.alone or entry.together]
    notes: list[RenderableType] = []
    if len(shown) > _MOST_ROWS and not verbose:
        shown = [_worst(entries, device) for device in dict.fromkeys(map(_device, entries))]
        notes.append(Text("of each GPU the variant that the others cost most: --verbose", "dim"))
    if count == 1:
        notes.append(Text("one GPU: there is no other, and it ran alone only", "yellow"))
    shares = [entry.overlap for entry in entries if entry.overlap is not None]
    if shares and min(shares) < _FEW:
        share = f"{min(shares):.0%}"
        text = f"all measured at once for {share} of the rounds only: --time S asks for more"
        notes.append(Text(text, "yellow"))
    head = f"{count} GPUs, each alone, then all together" if count > 1 else "1 GPU, alone"
    return Group(Text(head, "bold"), "", _table(shown), "", *notes)


def _device(entry: DeviceCost) -> str:
    return entry.device


def _worst(entries: Sequence[DeviceCost], device: str) -> DeviceCost:
    own = [entry for entry in entries if entry.device == device]
    return max(own, key=lambda entry: entry.cost or 0.0)


def _table(entries: Sequence[DeviceCost]) -> Table:
    table = columns_table()
    table.add_column("GPU", no_wrap=True)
    table.add_column("variant", overflow="fold")
    for head in ("alone", "together", "the others cost", "99 % interval"):
        table.add_column(head, justify="right", overflow="fold")
    for entry in entries:
        table.add_row(
            entry.device,
            entry.variant,
            seconds(entry.alone.median if entry.alone else None),
            seconds(entry.together.median if entry.together else None),
            _cost(entry),
            _interval(entry),
        )
    return table


def _cost(entry: DeviceCost) -> Text:
    if entry.cost is None:
        return Text("n/a", "dim")
    certain = entry.low is not None and entry.low > 1 + _LITTLE
    return Text(f"{entry.cost - 1:+.1%}", "bold red" if certain else "")


def _interval(entry: DeviceCost) -> str:
    if entry.low is None or entry.high is None:
        return ""
    return f"{entry.low - 1:+.1%} to {entry.high - 1:+.1%}"
