"""The collectives of a job to which all ranks came, in their order: when each rank came, on one
clock, and in which step.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from gpulab.features.late.events import CollectiveKind, RankActivity
from gpulab.features.late.timelines import Call, Timeline, Timelines

SETTLED = 3
"""First steps that do not count."""
_LIVE_CALLS, _FOR_CLOCKS = 600, 2_000
"""The newest ones, while the program runs; collectives that clocks of hosts are compared by."""


Place = tuple[str, int]
"""A collective within a step: what it is and where it is called, and its number of those alike."""


@dataclass
class Row:
    """One collective to which all ranks came: when, on one clock."""

    step: int
    place: Place
    kind: CollectiveKind
    arrivals: dict[int, float]
    called: dict[int, float]
    """When each rank's main thread asked for it."""
    last: float
    transfer_s: float | None = None
    """Once all had come, where the device says how long each was in it: no main thread waits."""

    @property
    def last_rank(self) -> int:
        return max(self.arrivals, key=lambda rank: self.arrivals[rank])


def after_others(moments: Mapping[int, float], rank: int) -> float:
    """Return how much later than the median of the others a rank was; negative: before them."""
    others = [at for other, at in moments.items() if other != rank]
    return moments[rank] - median(others)


@dataclass
class RankSpans:
    """A rank's spans on the clock of all, sorted by their beginning."""

    timeline: Timeline
    offset_s: float
    newest: int | None = None
    """How many of its spans count; None: all."""
    spans: dict[RankActivity, list[tuple[float, float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        spans = defaultdict(list)
        listed = list(self.timeline.spans)
        for span in listed if self.newest is None else listed[-self.newest :]:
            spans[span.kind].append((span.begun - self.offset_s, span.ended - self.offset_s))
        for kind, of_kind in spans.items():
            self.spans[kind] = sorted(of_kind)

    @property
    def step_ends(self) -> list[float]:
        marks = self.spans.get(RankActivity.STEP) or self.spans.get(RankActivity.BACKWARD, [])
        return [ended for _, ended in marks]

    def within(self, kind: RankActivity, begun: float, ended: float) -> list[tuple[float, float]]:
        """Spans of that kind that lie in this time."""
        spans = self.spans.get(kind, [])
        first = bisect_left(spans, (begun, 0.0))
        last = bisect_right(spans, (ended, float("inf")))
        return [span for span in spans[first:last] if span[1] <= ended]

    def around(self, kind: RankActivity, at: float) -> tuple[float, float] | None:
        """The span of that kind in which this moment lies."""
        spans = self.spans.get(kind, [])
        place = bisect_right(spans, (at, float("inf"))) - 1
        if place >= 0 and spans[place][1] > at:
            return spans[place]
        return None


def clock_offsets(timelines: Timelines) -> dict[str, float]:
    """Return what to take off the clock of each host: the first one's is that of all.

    A collective lets all ranks go at once. So the ends of what it was waited for in are alike on
    all hosts, but for the clocks; where no end is known, the first arrivals of each host are.
    """
    hosts = sorted({timeline.host for timeline in timelines.ranks.values()})
    if len(hosts) == 1:
        return {hosts[0]: 0.0}
    ranks = {rank: RankSpans(timeline, 0.0) for rank, timeline in timelines.ranks.items()}
    came = _apart(timelines, ranks, hosts[0], lambda _, at: at)
    released = _apart(timelines, ranks, hosts[0], _released)
    return {**dict.fromkeys(hosts, 0.0), **came, **released}


def _apart(
    timelines: Timelines,
    ranks: Mapping[int, RankSpans],
    first: str,
    moment: Callable[[RankSpans, float], float | None],
) -> dict[str, float]:
    """Return by how much a moment of the newest collectives is later than on the first host."""
    differences: dict[str, list[float]] = defaultdict(list)
    for calls in list(timelines.calls.values())[-_FOR_CLOCKS:]:
        earliest: dict[str, float] = {}
        for rank, call in calls.items():
            host, at = timelines.ranks[rank].host, moment(ranks[rank], call.at)
            if at is not None:
                earliest[host] = min(at, earliest.get(host, at))
        if first in earliest:
            for host, at in earliest.items():
                differences[host].append(at - earliest[first])
    return {host: median(of_host) for host, of_host in differences.items()}


def _released(rank: RankSpans, at: float) -> float | None:
    """Return the end of what a rank that came then waits in: a call, or a backward."""
    span = rank.around(RankActivity.CALL, at) or rank.around(RankActivity.BACKWARD, at)
    return span[1] if span else None


def rows_of(timelines: Timelines, ranks: Mapping[int, RankSpans], live: bool) -> list[Row]:
    """The collectives that count, in their order."""
    keys = list(timelines.calls)[-_LIVE_CALLS if live else 0 :]
    timed = {key[0] for key in keys if _device_timed(timelines.calls[key])}
    complete: list[tuple[dict[int, float], str, dict[int, Call]]] = []
    for key in keys:
        group, calls = key[0], timelines.calls[key]
        all_came = len(calls) == len(timelines.members(group)) > 1
        if all_came and (group not in timed or _device_timed(calls)):
            called = {rank: call.at - ranks[rank].offset_s for rank, call in calls.items()}
            complete.append((called, group, calls))
    complete.sort(key=lambda each: min(each[0].values()))
    reference = min(ranks, key=lambda rank: (not ranks[rank].step_ends, rank))
    ends = ranks[reference].step_ends
    disturbed = _disturbed(ranks.values(), ends)
    rows: list[Row] = []
    counts: Counter[tuple[int, str]] = Counter()
    for called, group, calls in complete:
        if reference in called and ends:
            step = bisect_left(ends, called[reference])
            if step < SETTLED or step >= len(ends) or step in disturbed:
                continue
        else:
            step = rows[-1].step + (0 if ends else 1) if rows else SETTLED
        # a rank that read while it was in the call does not know its line yet
        kind = max((call.kind for call in calls.values()), key=lambda kind: len(kind.line))
        same = f"{group} {kind.name} {kind.sizes} {kind.line}"
        counts[step, same] += 1
        last = max(called.values())
        row = Row(step, (same, counts[step, same]), kind, called, called, last)
        rows.append(_by_device(row, calls) if group in timed else row)
    return rows


def _by_device(row: Row, calls: Mapping[int, Call]) -> Row:
    """Make the row of a collective of which the device says how long each rank was in it: a rank
    came that much before the end, which is one for all. On the host it only asked for it.
    """
    took = {rank: call.took_s or 0.0 for rank, call in calls.items()}
    transfer_s = min(took.values())
    arrivals = {rank: row.last + transfer_s - took_s for rank, took_s in took.items()}
    return replace(row, arrivals=arrivals, transfer_s=transfer_s)


def _device_timed(calls: Mapping[int, Call]) -> bool:
    """Return whether the device says how long each rank was in a collective."""
    return all(call.took_s is not None for call in calls.values())


def _disturbed(ranks: Iterable[RankSpans], ends: Sequence[float]) -> set[int]:
    """Steps in which the follower took time of a rank."""
    steps: set[int] = set()
    for rank in ranks:
        for begun, ended in rank.spans.get(RankActivity.FOLLOWING, []):
            first = bisect_left(ends, begun)
            steps.update(range(first, min(bisect_left(ends, ended) + 1, len(ends))))
    return steps
