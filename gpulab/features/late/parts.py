"""What the main thread of a rank did in each step, in seconds, without waiting for other ranks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise

from gpulab.features.late.events import RankActivity
from gpulab.features.late.rows import RankSpans, Row

_SPANS = (RankActivity.LOADER, RankActivity.BACKWARD)
PARTS = ("loader", "backward", "gc", "other")
StepParts = dict[int, dict[str, float]]
"""By step, the seconds of each part of it."""


def parts_by_step(rank: RankSpans, of_steps: Mapping[int, Sequence[Row]]) -> StepParts:
    """Return the parts of those steps whose begin and end the rank saw."""
    own, ends = rank.timeline.rank, rank.step_ends
    parts: StepParts = {}
    for step, rows in of_steps.items():
        came = [row for row in rows if own in row.arrivals]
        place = bisect_left(ends, came[0].called[own]) if came else 0
        if 0 < place < len(ends):
            parts[step] = _parts(rank, ends[place - 1], ends[place], came)
    return parts


def _parts(rank: RankSpans, begun: float, ended: float, rows: Sequence[Row]) -> dict[str, float]:
    """Return the parts of the step between these moments."""
    own = rank.timeline.rank
    arrivals = sorted((row.called[own], row.last) for row in rows if row.transfer_s is None)
    collected = rank.within(RankActivity.GC, begun, ended)
    parts = dict.fromkeys(PARTS, 0.0)
    parts["gc"] = left_s = sum(end - start for start, end in collected)
    spans_s = sum(end - start for start, end in rank.within(RankActivity.CALL, begun, ended))
    for kind in _SPANS:
        for span in rank.within(kind, begun, ended):
            inside_s = sum(end - start for start, end in collected if span[0] <= start < span[1])
            parts[kind.value] += max(0.0, _own_s(span, arrivals) - inside_s)
            spans_s += span[1] - span[0]
            left_s -= inside_s
    parts["other"] = max(0.0, ended - begun - spans_s - left_s)
    return parts


def _own_s(span: tuple[float, float], arrivals: Sequence[tuple[float, float]]) -> float:
    """Return the seconds of a span without waiting: after the last arrival in it, and after those
    whose end the rank saw before it came to the next one.
    """
    begun, ended = span
    inside = [each for each in arrivals if begun <= each[0] <= ended]
    if not inside:
        return ended - begun
    waited_s = ended - inside[-1][0]
    for (at, last), (following, _) in pairwise(inside):
        if following >= last > at:
            waited_s += last - at
    return max(0.0, ended - begun - waited_s)
