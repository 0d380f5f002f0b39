"""The bill of a program under way, as a panel of the screen."""

from __future__ import annotations

from gpulab.core.units import seconds
from gpulab.draw.area import Area
from gpulab.draw.panel import Panel, Rows
from gpulab.features.bill.view import cause_of, where
from gpulab.report.live import LiveReport

_FEWEST, _ROWS, _MOST = 3, 9, 16
_CAUSE = 17


def _heading(run: LiveReport) -> tuple[str, str]:
    part = run.report.get("bill")
    return "Where the time goes", seconds(part.bills[0].wall_s) if part else ""


def _rows(run: LiveReport, width: int) -> Rows:
    return Rows(_FEWEST, _ROWS, _MOST)


def _draw(run: LiveReport, area: Area) -> None:
    part = run.report.get("bill")
    if part is None:
        area.put(0, 0, "the first rows come after a second of a Python", "dim")
        return
    process = part.bills[0]
    shown = process.rows[: area.height]
    place = _CAUSE + 2 + max((len(cause_of(entry)) for entry in shown), default=0)
    for row, entry in enumerate(shown):
        area.put(row, 0, f"{entry.seconds:7.1f} s {entry.seconds / process.wall_s:5.0%}", "bold")
        area.put(row, _CAUSE, cause_of(entry))
        area.put(row, place, where(entry))


_ABOUT = (
    "Seconds of the process that counts so far, each booked to one cause, with the innermost line "
    "of the program, by samples of its main thread's stack."
)
BILL = Panel("bill", _heading, _rows, _draw, _ABOUT)
