"""Who is late: collectives of all ranks are matched by group and number, and the seconds between
the ranks' arrivals are put on what each of them did before.

A rank that waits in a collective looks as slow as the one that it waits for. So a part of a step
counts without waiting: that of a rank is what it did until it came.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import comb
from statistics import fmean, median

from gpulab.core.statuses import LateCause, RankActivity
from gpulab.features.late.timelines import Call, Key, Timeline, Timelines
from gpulab.report.report import JobCollective, JobRank, JobReport, LateRank, MissingRank
from gpulab.stats.statistics import median_interval

LATE, LAST = 0.05, 0.6
"""Of a step that a rank is late, and of the collectives to which it comes last: from there on."""
RARELY, MOST_WAITING = 0.03, 0.6
"""A rank that is late in few steps: at least in this share of them, with that of all waiting."""
_FEWEST_RARE, _LATE_STEP, _BY_CHANCE = 3, 0.2, 0.01
"""How many steps, what of a step it is late in each, and how likely any of the ranks is last in so
many of such steps where all are alike.
"""
EXPLAINS = 0.5
"""Of its lateness that a cause must explain."""
STOLEN = 0.75
"""The same of a CPU that it did not get: a part that takes longer is more often kept from it too.
"""
SLOW, BEYOND_OTHERS = 0.25, 2.5
"""Of a step that one collective takes once all have come, and over any other one of the step."""
THROTTLED, SLOWED = 0.9, 0.5
"""Its clock over that of the others, and readings with a slowdown beyond theirs."""
SETTLED = 3
"""First steps that do not count."""
FEWEST = 8
"""Steps, before somebody is late."""
HANGS_S = 10.0
"""That a rank has not come for."""
_LIVE_CALLS, _LIVE_SPANS, _FOR_CLOCKS = 600, 3_000, 2_000
"""The newest ones, while the program runs; collectives that clocks of hosts are compared by."""
_MOST_COLLECTIVES = 8
_CAUSES = {
    "loader": LateCause.LOADER,
    "forward": LateCause.FORWARD,
    "backward": LateCause.BACKWARD,
    "optimizer": LateCause.OPTIMIZER,
    "gc": LateCause.GC,
    "other": LateCause.OTHER,
}
PARTS = tuple(_CAUSES)
_COMPUTING = (RankActivity.FORWARD, RankActivity.BACKWARD)


@dataclass(frozen=True)
class _Place:
    """A collective within a step."""

    group: str
    name: str
    sizes: str
    line: str
    nth: int


@dataclass
class _Row:
    """One collective to which all ranks came: when, on one clock."""

    key: Key
    step: int
    place: _Place
    arrivals: dict[int, float]
    sizes: list[list[int]]
    last: float = 0.0

    def late_s(self, rank: int) -> float:
        """After the median of the others; negative where it came before them."""
        others = [at for other, at in self.arrivals.items() if other != rank]
        return self.arrivals[rank] - median(others)

    @property
    def last_rank(self) -> int:
        return max(self.arrivals, key=lambda rank: self.arrivals[rank])


@dataclass
class _Rank:
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


def analysed(timelines: Timelines, *, live: bool = False) -> JobReport | None:
    """None where no two ranks have a collective in common. `live`: of the newest ones alone."""
    if len(timelines.ranks) < 2:
        return None
    offsets = clock_offsets(timelines)
    ranks = {
        rank: _Rank(timeline, offsets[timeline.host], _LIVE_SPANS if live else None)
        for rank, timeline in sorted(timelines.ranks.items())
    }
    rows = _rows(timelines, ranks, live)
    missing = missing_rank(timelines)
    if not rows:
        return JobReport(steps=0, step_s=None, missing=missing) if missing else None
    return _Job(ranks, rows).report(missing)


def clock_offsets(timelines: Timelines) -> dict[str, float]:
    """What to take off the clock of each host: the first one's is that of all.

    A collective lets all ranks go at once. So the ends of what it was waited for in are alike on
    all hosts, but for the clocks; where no end is known, the first arrivals of each host are.
    """
    hosts = sorted({timeline.host for timeline in timelines.ranks.values()})
    offsets = dict.fromkeys(hosts, 0.0)
    if len(hosts) == 1:
        return offsets
    ranks = {rank: _Rank(timeline, 0.0) for rank, timeline in timelines.ranks.items()}
    releases: dict[str, list[float]] = defaultdict(list)
    arrivals: dict[str, list[float]] = defaultdict(list)
    for calls in list(timelines.calls.values())[-_FOR_CLOCKS:]:
        released: dict[str, list[float]] = defaultdict(list)
        came: dict[str, list[float]] = defaultdict(list)
        for rank, call in calls.items():
            host = ranks[rank].timeline.host
            came[host].append(call.at)
            if (span := _waiting_span(ranks[rank], call.at)) is not None:
                released[host].append(span[1])
        for found, differences in ((released, releases), (came, arrivals)):
            if hosts[0] not in found:
                continue
            for host in hosts[1:]:
                if host in found:
                    differences[host].append(min(found[host]) - min(found[hosts[0]]))
    for host in hosts[1:]:
        known = releases[host] or arrivals[host]
        offsets[host] = median(known) if known else 0.0
    return offsets


def _waiting_span(rank: _Rank, at: float) -> tuple[float, float] | None:
    """What a rank that came at that moment waits in: a call of the program, or a backward."""
    return rank.around(RankActivity.CALL, at) or rank.around(RankActivity.BACKWARD, at)


def _rows(timelines: Timelines, ranks: Mapping[int, _Rank], live: bool) -> list[_Row]:
    """The collectives that count, in their order."""
    keys = list(timelines.calls)
    if live:
        keys = keys[-_LIVE_CALLS:]
    complete = {
        key: timelines.calls[key]
        for key in keys
        if len(timelines.calls[key]) == len(timelines.members(key[0])) > 1
    }
    reference = min(ranks, key=lambda rank: (not ranks[rank].step_ends, rank))
    ends = ranks[reference].step_ends
    disturbed = _disturbed(ranks.values(), ends)
    rows: list[_Row] = []
    counts: Counter[tuple[int, str]] = Counter()
    for key, calls in sorted(complete.items(), key=lambda item: _first(item[1], ranks)):
        if reference in calls and ends:
            step = bisect_left(ends, calls[reference].at - ranks[reference].offset_s)
            if step < SETTLED or step >= len(ends) or step in disturbed:
                continue
        else:
            step = rows[-1].step + (0 if ends else 1) if rows else SETTLED
        # a rank that read while it was in the call does not know its line yet
        kind = max((call.kind for call in calls.values()), key=lambda kind: len(kind.line))
        same = f"{key[0]} {kind.name} {kind.sizes} {kind.line}"
        counts[step, same] += 1
        place = _Place(key[0], kind.name, str(kind.sizes), kind.line, counts[step, same])
        rows.append(_row(key, step, place, calls, ranks))
    return rows


def _first(calls: Mapping[int, Call], ranks: Mapping[int, _Rank]) -> float:
    return min(call.at - ranks[rank].offset_s for rank, call in calls.items())


def _row(
    key: Key, step: int, place: _Place, calls: Mapping[int, Call], ranks: Mapping[int, _Rank]
) -> _Row:
    """Where the device says how long each rank was in the collective, it came that much before the
    end, which is one for all: on the host it only asked for it.
    """
    arrivals = {rank: call.at - ranks[rank].offset_s for rank, call in calls.items()}
    took = [call.took_s for call in calls.values() if call.took_s is not None]
    if len(took) == len(calls):
        end = max(arrivals.values()) + min(took)
        arrivals = {rank: end - (call.took_s or 0.0) for rank, call in calls.items()}
    sizes = next(iter(calls.values())).kind.sizes
    return _Row(key, step, place, arrivals, sizes, max(arrivals.values()))


def _disturbed(ranks: Iterable[_Rank], ends: Sequence[float]) -> set[int]:
    """Steps in which the follower took time of a rank."""
    steps: set[int] = set()
    for rank in ranks:
        for begun, ended in rank.spans.get(RankActivity.FOLLOWING, []):
            first = bisect_left(ends, begun)
            steps.update(range(first, min(bisect_left(ends, ended) + 1, len(ends))))
    return steps


class _Job:
    """The ranks over the collectives that count."""

    def __init__(self, ranks: Mapping[int, _Rank], rows: Sequence[_Row]) -> None:
        self._ranks, self._rows = ranks, rows
        self._by_place: dict[_Place, list[_Row]] = defaultdict(list)
        self._of_steps: dict[int, list[_Row]] = defaultdict(list)
        for row in rows:
            self._by_place[row.place].append(row)
            self._of_steps[row.step].append(row)
        self._steps = sorted(self._of_steps)
        # one that most steps lack, such as a barrier at the end of an epoch, is no part of a step
        self._by_place = {
            place: of_place
            for place, of_place in self._by_place.items()
            if len(of_place) >= len(self._steps) / 4
        } or self._by_place
        self._step_s = self._step_time()

    def report(self, missing: MissingRank | None) -> JobReport:
        places = sorted(self._by_place, key=self._wait_s, reverse=True)[:_MOST_COLLECTIVES]
        collectives = [self._collective(place) for place in places]
        parts = {rank: self._parts(rank) for rank in self._ranks}
        listed = [self._rank(rank, parts[rank]) for rank in self._ranks]
        late = self._late(places, listed)
        return JobReport(
            steps=len(self._steps),
            step_s=self._step_s,
            ranks=listed,
            collectives=collectives,
            late=late,
            slow=self._slow(collectives),
            missing=missing,
        )

    def _step_time(self) -> float | None:
        """Between the first collectives of steps in a row."""
        firsts = {step: min(row.last for row in rows) for step, rows in self._of_steps.items()}
        times_s = [firsts[step + 1] - at for step, at in firsts.items() if step + 1 in firsts]
        times_s = [time_s for time_s in times_s if time_s > 0]
        return median(times_s) if times_s else None

    def _wait_s(self, place: _Place) -> float:
        rows = self._by_place[place]
        return sum(row.last - median(row.arrivals.values()) for row in rows) / len(self._steps)

    def _collective(self, place: _Place) -> JobCollective:
        rows = self._by_place[place]
        transfers = [time_s for row in rows if (time_s := self._transfer(row)) is not None]
        lasts = Counter(row.last_rank for row in rows)
        return JobCollective(
            group=place.group,
            name=place.name,
            sizes=rows[0].sizes,
            line=place.line,
            nth=place.nth,
            steps=len(rows),
            wait_s=self._wait_s(place),
            transfer_s=median(transfers) if transfers else None,
            last_rank=lasts.most_common(1)[0][0],
        )

    def _transfer(self, row: _Row) -> float | None:
        """From the last arrival until the first rank went on; None where it is not seen: a call of
        the program waits, and the last collective of a backward.
        """
        ends = []
        for rank, at in row.arrivals.items():
            if (call := self._ranks[rank].around(RankActivity.CALL, at)) is not None:
                ends.append(call[1])
            elif (span := self._ranks[rank].around(RankActivity.BACKWARD, at)) is not None:
                same = [each.arrivals[rank] for each in self._of_steps[row.step]]
                if all(other <= at or other > span[1] for other in same):
                    ends.append(span[1])
        if len(ends) < len(row.arrivals) or min(ends) <= row.last:
            return None
        return min(ends) - row.last

    def _parts(self, rank: int) -> dict[int, dict[str, float]]:
        """For each step what the main thread of a rank did in it, in seconds, without waiting."""
        own = self._ranks[rank]
        ends = own.step_ends
        parts: dict[int, dict[str, float]] = {}
        for step in self._steps:
            rows = [row for row in self._of_steps[step] if rank in row.arrivals]
            if not rows:
                continue
            place = bisect_left(ends, rows[0].arrivals[rank])
            if 0 < place < len(ends):
                parts[step] = _parts_of_step(own, ends[place - 1], ends[place], rows)
        return parts

    def _mean_parts(
        self, parts: Mapping[int, Mapping[str, float]], steps: Sequence[int]
    ) -> dict[str, float]:
        known = [parts[step] for step in steps if step in parts]
        if not known:
            return dict.fromkeys(PARTS, 0.0)
        return {name: fmean(each[name] for each in known) for name in PARTS}

    def _parts_of(self, rank: int, steps: Sequence[int]) -> dict[str, float]:
        """The parts of its median step, of these."""
        parts = self._parts(rank)
        known = [parts[step] for step in steps if step in parts]
        if not known:
            return dict.fromkeys(PARTS, 0.0)
        return {name: median(each[name] for each in known) for name in PARTS}

    def _rank(self, rank: int, parts: Mapping[int, Mapping[str, float]]) -> JobRank:
        place, late_s = self._worst(rank)
        rows = [row for row in self._by_place[place] if rank in row.arrivals]
        own = self._ranks[rank].timeline
        run_s, delay_s = self._scheduled(rank)
        means = self._mean_parts(parts, self._steps)
        return JobRank(
            rank=rank,
            host=own.host.partition(" ")[0],
            late_s=late_s,
            last=sum(row.last_rank == rank for row in rows) / len(rows) if rows else 0.0,
            run_s=run_s,
            delay_s=delay_s,
            clock=median(own.clocks) if own.clocks else None,
            slowed=fmean(own.slowed) if own.slowed else None,
            **{f"{name}_s": value for name, value in means.items()},
        )

    def _worst(self, rank: int) -> tuple[_Place, float]:
        """Where the rank is late most, and by how much in the median step."""
        late = {
            place: median(row.late_s(rank) for row in rows)
            for place, rows in self._by_place.items()
            if rank in rows[0].arrivals
        }
        place = max(late, key=lambda place: late[place], default=next(iter(self._by_place)))
        return place, late.get(place, 0.0)

    def _scheduled(self, rank: int) -> tuple[float | None, float | None]:
        """CPU time and time without a CPU, per step."""
        readings = self._ranks[rank].timeline.readings
        ends = self._ranks[rank].step_ends
        if len(readings) < 2 or not ends:
            return None, None
        offset_s = self._ranks[rank].offset_s
        settled = ends[min(SETTLED, len(ends) - 1)]
        used = [each for each in readings if each[0] - offset_s >= settled]
        if len(used) < 2:
            return None, None
        first, last = used[0], used[-1]
        steps = bisect_left(ends, last[0] - offset_s) - bisect_left(ends, first[0] - offset_s)
        if steps < 1:
            return None, None
        return (last[1] - first[1]) / steps, (last[2] - first[2]) / steps

    def _slow(self, collectives: Sequence[JobCollective]) -> int | None:
        """One that takes much longer than all others: many ranks on few cores make all slow."""
        if not self._step_s or len(self._steps) < FEWEST:
            return None
        known = [(each.transfer_s, at) for at, each in enumerate(collectives) if each.transfer_s]
        if len(known) < 2:
            return None
        (second_s, _), (longest_s, at) = sorted(known)[-2:]
        slow = longest_s >= SLOW * self._step_s and longest_s >= BEYOND_OTHERS * second_s
        return at if slow else None

    def _late(self, places: Sequence[_Place], listed: Sequence[JobRank]) -> LateRank | None:
        if not self._step_s or len(self._steps) < FEWEST:
            return None
        always = [each for each in listed if self._is_always_late(each)]
        if always:
            worst = max(always, key=lambda each: each.late_s)
            return self._because(worst, worst.late_s, worst.last, self._steps, places)
        return self._rarely(places, listed)

    def _is_always_late(self, rank: JobRank) -> bool:
        """By its median step, and not by chance: of two ranks one is always last. Where the machine
        is busy each of many ranks is last now and then, and the late one less often.
        """
        step_s = self._step_s or 0.0
        if rank.late_s < LATE * step_s:
            return False
        rows = self._by_place[self._worst(rank.rank)[0]]
        interval = median_interval([row.late_s(rank.rank) for row in rows])
        least = LATE / 2 if rank.last >= LAST else LATE
        return interval is not None and interval.low >= least * step_s

    def _rarely(self, places: Sequence[_Place], listed: Sequence[JobRank]) -> LateRank | None:
        """A rank that is late in some steps, and then by much."""
        waits: dict[int, dict[int, float]] = {each.rank: {} for each in listed}
        for step, rows in self._of_steps.items():
            row = max(rows, key=lambda row: row.late_s(row.last_rank))
            waits[row.last_rank][step] = max(0.0, row.late_s(row.last_rank))
        total = sum(sum(steps.values()) for steps in waits.values())
        step_s = self._step_s or 0.0
        many = {
            rank: [step for step, wait_s in steps.items() if wait_s >= _LATE_STEP * step_s]
            for rank, steps in waits.items()
        }
        count = sum(map(len, many.values()))
        for each in listed:
            own, much = waits[each.rank], many[each.rank]
            if _tail(len(much), count, 1 / len(listed)) * len(listed) > _BY_CHANCE:
                continue
            late_s = sum(own[step] for step in much) / len(self._steps)
            enough = max(_FEWEST_RARE, RARELY * len(self._steps))
            often = len(much) >= enough and late_s >= LATE * step_s
            if often and sum(own.values()) >= MOST_WAITING * total:
                share = len(own) / len(self._steps)
                return self._because(each, late_s, share, much, places)
        return None

    def _because(
        self,
        late: JobRank,
        late_s: float,
        last: float,
        steps: Sequence[int],
        places: Sequence[_Place],
    ) -> LateRank:
        """`steps`: those in which it is late; the mean over all steps is late_s."""
        part = len(steps) / len(self._steps)
        means = {rank: self._parts_of(rank, steps) for rank in self._ranks}
        others = [rank for rank in self._ranks if rank != late.rank]
        excess = {
            name: part * (means[late.rank][name] - median(means[rank][name] for rank in others))
            for name in PARTS
        }
        cause, excess_s = _cause(late, late_s, excess, self._listed(others))
        worst = self._worst(late.rank)[0]
        return LateRank(
            rank=late.rank,
            late_s=late_s,
            share=late_s / (self._step_s or late_s),
            last=last,
            cause=cause,
            excess_s=excess_s,
            collective=places.index(worst) if worst in places else 0,
        )

    def _listed(self, ranks: Sequence[int]) -> list[JobRank]:
        return [self._rank(rank, {}) for rank in ranks]


def _tail(least: int, n: int, chance: float) -> float:
    """How likely so many of n are, each with that chance."""
    return sum(
        comb(n, each) * chance**each * (1 - chance) ** (n - each) for each in range(least, n + 1)
    )


def _cause(
    late: JobRank, late_s: float, excess: Mapping[str, float], others: Sequence[JobRank]
) -> tuple[LateCause, float]:
    """What explains at least half of it, and how many seconds."""
    name = max(excess, key=lambda name: excess[name])
    cause, excess_s = _CAUSES[name], excess[name]
    stolen_s = _beyond(late.delay_s, [other.delay_s for other in others])
    ran_s = _beyond(late.run_s, [other.run_s for other in others])
    if name != "gc" and stolen_s >= STOLEN * max(late_s, excess_s) and stolen_s > ran_s:
        return LateCause.CPU_STOLEN, stolen_s
    if name not in ("gc", "loader") and _is_throttled(late, others):
        return LateCause.THROTTLED, excess_s
    if excess_s >= EXPLAINS * late_s:
        return cause, excess_s
    return LateCause.UNKNOWN, excess_s


def _beyond(own: float | None, others: Iterable[float | None]) -> float:
    known = [other for other in others if other is not None]
    return own - median(known) if own is not None and known else 0.0


def _is_throttled(late: JobRank, others: Sequence[JobRank]) -> bool:
    if _beyond(late.slowed, (other.slowed for other in others)) >= SLOWED:
        return True
    clocks = [other.clock for other in others if other.clock is not None]
    return late.clock is not None and bool(clocks) and late.clock <= THROTTLED * median(clocks)


def _parts_of_step(
    rank: _Rank, begun: float, ended: float, rows: Sequence[_Row]
) -> dict[str, float]:
    """Of the step between these moments, by its end marks."""
    own = _OwnTime(rank, rows)
    parts = dict.fromkeys(PARTS, 0.0)
    spans_s = 0.0
    for kind in (RankActivity.LOADER, *_COMPUTING, RankActivity.OPTIMIZER):
        for span in rank.within(kind, begun, ended):
            parts[kind.value] += own.seconds(*span)
            spans_s += span[1] - span[0]
    calls_s = sum(end - start for start, end in rank.within(RankActivity.CALL, begun, ended))
    collected = rank.within(RankActivity.GC, begun, ended)
    for start, end in collected:
        parts["gc"] += end - start
        for kind in (RankActivity.LOADER, *_COMPUTING, RankActivity.OPTIMIZER):
            if rank.around(kind, start) is not None:
                parts[kind.value] = max(0.0, parts[kind.value] - (end - start))
                spans_s -= end - start
                break
    parts["other"] = max(0.0, ended - begun - spans_s - calls_s - parts["gc"])
    return parts


class _OwnTime:
    """What of a span a rank did itself, by its arrivals in that step."""

    def __init__(self, rank: _Rank, rows: Sequence[_Row]) -> None:
        self._arrivals = sorted((row.arrivals[rank.timeline.rank], row.last) for row in rows)

    def seconds(self, begun: float, ended: float) -> float:
        """Without waiting: after the last arrival in it, and after those whose end the rank saw
        before it came to the next one.
        """
        inside = [each for each in self._arrivals if begun <= each[0] <= ended]
        if not inside:
            return ended - begun
        waited_s = ended - inside[-1][0]
        for (at, last), (following, _) in pairwise(inside):
            if following >= last > at:
                waited_s += last - at
        return max(0.0, ended - begun - waited_s)


def missing_rank(timelines: Timelines) -> MissingRank | None:
    """The rank that did not come to a collective for longest, while another waits there."""
    hosts = {timeline.host for timeline in timelines.ranks.values()}
    offsets = clock_offsets(timelines) if len(hosts) > 1 else dict.fromkeys(hosts, 0.0)
    found: list[MissingRank] = []
    heard = max(timeline.heard for timeline in timelines.ranks.values())
    for group, number, calls in _newest(timelines):
        for rank in timelines.members(group) - calls.keys():
            timeline = timelines.ranks[rank]
            if timeline.newest.get(group, -1) >= number:
                continue
            first = min(
                calls,
                key=lambda other: calls[other].at - offsets[timelines.ranks[other].host],
            )
            since = calls[first].at - offsets[timelines.ranks[first].host]
            silent_s = heard - timeline.heard
            now = timeline.at - offsets[timeline.host]
            waiting_s = now - since + (silent_s if silent_s > HANGS_S else 0.0)
            kind = calls[first].kind
            found.append(
                MissingRank(
                    rank=rank,
                    name=kind.name,
                    sizes=kind.sizes,
                    line=kind.line,
                    waiting_s=max(0.0, waiting_s),
                    stack=timeline.stack if silent_s <= HANGS_S else [],
                )
            )
    return max(found, key=lambda each: each.waiting_s, default=None)


def _newest(timelines: Timelines) -> Iterator[tuple[str, int, dict[int, Call]]]:
    """The first collective of each group that not all came to, of its newest ones."""
    least: dict[str, int] = {}
    for group in timelines.groups:
        ranks = [timelines.ranks[rank] for rank in timelines.members(group)]
        least[group] = min(timeline.newest.get(group, 0) for timeline in ranks)
    for group, number in least.items():
        calls = timelines.calls.get((group, number + 1))
        if calls:
            yield group, number + 1, calls
