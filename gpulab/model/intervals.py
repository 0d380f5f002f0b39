"""Interval algebra on sorted, disjoint lists of half-open (start, end) pairs: what is counted, is counted once.

Ends are in any one unit, in practice seconds. `union` makes such a list of any pairs; everything else takes and
gives such lists. Linear after sorting.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from math import fsum, inf

Span = tuple[float, float]


def union(spans: Iterable[Span]) -> list[Span]:
    """The instants in any of the spans; empty spans vanish, touching ones become one."""
    found: list[Span] = []
    for start, end in sorted(span for span in spans if span[1] > span[0]):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def measure(spans: Iterable[Span]) -> float:
    return fsum(end - start for start, end in spans)


def intersect(a: Sequence[Span], b: Sequence[Span]) -> list[Span]:
    """The instants in both."""
    found: list[Span] = []
    i = j = 0
    while i < len(a) and j < len(b):
        start, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if end > start:
            found.append((start, end))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return found


def subtract(a: Sequence[Span], b: Sequence[Span]) -> list[Span]:
    """The instants in `a` and not in `b`."""
    found: list[Span] = []
    j = 0
    for start, end in a:
        while j < len(b) and b[j][1] <= start:
            j += 1
        k, at = j, start
        while k < len(b) and b[k][0] < end:
            if b[k][0] > at:
                found.append((at, b[k][0]))
            at = b[k][1]
            k += 1
        if at < end:
            found.append((at, end))
        j = max(j, k - 1)
    return found


def clip(spans: Sequence[Span], start: float, end: float) -> list[Span]:
    """The instants from `start` to `end`."""
    return [(max(a, start), min(b, end)) for a, b in spans if min(b, end) > max(a, start)]


def contains(spans: Sequence[Span], instant: float) -> bool:
    at = bisect_right(spans, instant, key=lambda span: span[0]) - 1
    return at >= 0 and instant < spans[at][1]


def innermost(spans: Sequence[Span]) -> list[tuple[float, float, int]]:
    """Each instant of any spans, once: (start, end, index of the innermost span there).

    The innermost is the one that began last; of those that began together the shortest, then the later in the list.
    """
    full = [i for i, (start, end) in enumerate(spans) if end > start]
    order = sorted(full, key=lambda i: (spans[i][0], -spans[i][1]))
    found: list[tuple[float, float, int]] = []
    around: list[tuple[int, int]] = []
    at = -inf
    for rank, index in enumerate([*order, -1]):
        start = inf if index < 0 else spans[index][0]
        while around and at < start:
            top = around[0][1]
            if spans[top][1] <= at:
                heappop(around)
            else:
                upto = min(spans[top][1], start)
                found.append((at, upto, top))
                at = upto
        if index >= 0:
            at = start
            heappush(around, (-rank, index))
    return found
