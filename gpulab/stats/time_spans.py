"""Interval algebra on sorted, disjoint lists of half-open (start, end) pairs: what is counted is
counted once.

Ends are in any one unit, in practice seconds. `union` makes such a list of any pairs; everything
else takes and returns such lists. Linear after sorting.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from math import fsum, inf

Span = tuple[float, float]


def union(spans: Iterable[Span]) -> list[Span]:
    """The instants in any of the spans; empty spans vanish, touching ones become one."""
    merged: list[Span] = []
    for start, end in sorted(span for span in spans if span[1] > span[0]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def measure(spans: Iterable[Span]) -> float:
    """The sum of the lengths."""
    return fsum(end - start for start, end in spans)


def intersect(a: Sequence[Span], b: Sequence[Span]) -> list[Span]:
    """The instants in both."""
    common: list[Span] = []
    i = j = 0
    while i < len(a) and j < len(b):
        start, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if end > start:
            common.append((start, end))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return common


def subtract(a: Sequence[Span], b: Sequence[Span]) -> list[Span]:
    """The instants in `a` and not in `b`."""
    rest: list[Span] = []
    j = 0
    for start, end in a:
        while j < len(b) and b[j][1] <= start:
            j += 1
        k, position = j, start
        while k < len(b) and b[k][0] < end:
            if b[k][0] > position:
                rest.append((position, b[k][0]))
            position = b[k][1]
            k += 1
        if position < end:
            rest.append((position, end))
        j = max(j, k - 1)
    return rest


def clip(spans: Sequence[Span], start: float, end: float) -> list[Span]:
    """The instants from `start` to `end`."""
    return [(max(a, start), min(b, end)) for a, b in spans if min(b, end) > max(a, start)]


def uncovered(spans: Sequence[Span], start: float, end: float) -> float:
    """How much of the time from `start` to `end` is in none of `spans`, a union."""
    first = bisect_right(spans, start, key=lambda span: span[1])
    beyond = bisect_left(spans, end, key=lambda span: span[0])
    return measure(subtract([(start, end)], spans[first:beyond]))


def contains(spans: Sequence[Span], instant: float) -> bool:
    index = bisect_right(spans, instant, key=lambda span: span[0]) - 1
    return index >= 0 and instant < spans[index][1]


def innermost(spans: Sequence[Span]) -> list[tuple[float, float, int]]:
    """Each instant of any spans, once: (start, end, index of the innermost span there).

    The innermost is the one that began last; of those that began together the shortest, then the
    later in the list.
    """
    nonempty = [index for index, (start, end) in enumerate(spans) if end > start]
    order = sorted(nonempty, key=lambda index: (spans[index][0], -spans[index][1]))
    pieces: list[tuple[float, float, int]] = []
    enclosing: list[tuple[int, int]] = []
    position = -inf
    for rank, index in enumerate([*order, -1]):
        start = inf if index < 0 else spans[index][0]
        while enclosing and position < start:
            top = enclosing[0][1]
            if spans[top][1] <= position:
                heappop(enclosing)
            else:
                until = min(spans[top][1], start)
                pieces.append((position, until, top))
                position = until
        if index >= 0:
            position = start
            heappush(enclosing, (-rank, index))
    return pieces
