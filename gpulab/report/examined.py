"""Several reports of one kind of check as one: every process makes them again."""

from __future__ import annotations

from msgspec.structs import replace

from gpulab.protocol.events import Examined
from gpulab.protocol.finding import Value
from gpulab.protocol.statuses import CheckKind

_SUMMED = frozenset({"late"})
"""Counts of what a process did; of other numbers the largest stands, and of all else the last."""


def add_examined(examined: dict[CheckKind, Examined], event: Examined) -> None:
    """Put a report beside those before it."""
    before = examined.get(event.check)
    examined[event.check] = event if before is None else together(before, event)


def together(before: Examined, event: Examined) -> Examined:
    """What fails outlives what casts doubt, that outlives what passed, and that what did not run."""
    decisive = event if _rank(event) <= _rank(before) else before
    count = sum(report.count for report in (before, event) if report.skipped is None)
    if not _ran(before) or not _ran(event):
        return replace(decisive, count=count)
    values = {**before.values, **event.values}
    both = before.values.keys() & event.values.keys()
    merged = {name: _merged(name, before.values[name], event.values[name]) for name in both}
    return replace(decisive, count=count, values={**values, **merged})


def _rank(event: Examined) -> int:
    if not event.ok:
        return 0
    return 1 if event.reason else 3 if event.skipped else 2


def _ran(event: Examined) -> bool:
    return event.ok and event.skipped is None


def _merged(name: str, before: Value, after: Value) -> Value:
    if not _is_number(before) or not _is_number(after):
        return before if after is None else after
    assert isinstance(before, (int, float))
    assert isinstance(after, (int, float))
    return before + after if name in _SUMMED else max(before, after)


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
