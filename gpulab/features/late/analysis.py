"""Who is late: collectives of all ranks are matched by group and number, and the seconds between
the ranks' arrivals are put on what each of them did before.

A rank that waits in a collective looks as slow as the one that it waits for. So a part of a step
counts without waiting: that of a rank is what it did until it came.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import comb
from statistics import fmean, median

from gpulab.core.statuses import RankActivity
from gpulab.features.late.missing import missing_rank
from gpulab.features.late.result import JobCollective, JobRank, JobReport, LateRank, MissingRank
from gpulab.features.late.rows import (
    SETTLED,
    Place,
    RankSpans,
    Row,
    after_others,
    clock_offsets,
    rows_of,
)
from gpulab.features.late.statuses import LateCause
from gpulab.features.late.timelines import Timelines
from gpulab.stats.statistics import median_interval

LATE, LAST = 0.05, 0.6
"""Of a step that a rank is late, and of the collectives to which it comes last: from there on."""
RARELY, MOST_WAITING = 0.03, 0.75
"""A rank that is late in few steps: at least in this share of them. Where others make over a
quarter of all waiting, the work is unequal, and no one rank is late.
"""
_FEWEST_RARE, _LATE_STEP, _BY_CHANCE = 3, 0.2, 0.001
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
FEWEST = 8
"""Steps, before somebody is late."""
_LIVE_SPANS = 3_000
"""The newest ones, while the program runs."""
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
StepParts = dict[int, dict[str, float]]
"""By step, the seconds of each part of it."""


def analysed(timelines: Timelines, *, live: bool = False) -> JobReport | None:
    """None where no two ranks have a collective in common. `live`: of the newest ones alone."""
    if len(timelines.ranks) < 2:
        return None
    offsets = clock_offsets(timelines)
    ranks = {
        rank: RankSpans(timeline, offsets[timeline.host], _LIVE_SPANS if live else None)
        for rank, timeline in sorted(timelines.ranks.items())
    }
    rows = rows_of(timelines, ranks, live)
    missing = missing_rank(timelines)
    if not rows:
        return JobReport(steps=0, step_s=None, missing=missing) if missing else None
    return _Job(ranks, rows).report(missing)


class _Job:
    """The ranks over the collectives that count."""

    def __init__(self, ranks: Mapping[int, RankSpans], rows: Sequence[Row]) -> None:
        self._ranks, self._rows = ranks, rows
        self._by_place: dict[Place, list[Row]] = defaultdict(list)
        self._of_steps: dict[int, list[Row]] = defaultdict(list)
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
        self._hidden_s = {rank: self._costless_s(rank) for rank in ranks}

    def report(self, missing: MissingRank | None) -> JobReport:
        places = sorted(self._by_place, key=self._wait_s, reverse=True)[:_MOST_COLLECTIVES]
        collectives = [self._collective(place) for place in places]
        parts = {rank: self._parts(rank) for rank in self._ranks}
        listed = [self._rank(rank, parts[rank]) for rank in self._ranks]
        late = self._late(places, listed, parts)
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
        """Between the first collectives of steps in a row. Of a device their mean: its host runs
        ahead, and waits now and then for several steps together.
        """
        firsts = {step: min(row.last for row in rows) for step, rows in self._of_steps.items()}
        times_s = [firsts[step + 1] - at for step, at in firsts.items() if step + 1 in firsts]
        times_s = [time_s for time_s in times_s if time_s > 0]
        if not times_s:
            return None
        by_device = any(row.transfer_s is not None for row in self._rows)
        return fmean(times_s) if by_device else median(times_s)

    def _costless_s(self, rank: int) -> float:
        """Return how much of the seconds that a rank comes later by the device's clock costs nobody
        anything.

        With NCCL a main thread goes on while its device waits: it loads the next batch meanwhile,
        and comes to the next collective that much sooner. What the others lose is what the late
        rank does longer than they, and what its device takes longer.
        """
        of_places = [
            [row for row in rows if row.transfer_s is not None and rank in row.arrivals]
            for rows in self._by_place.values()
        ]
        rows = max(filter(None, of_places), key=lambda rows: _median_late_s(rows, rank), default=[])
        medians = {other: self._parts_of(other, self._steps) for other in self._ranks}
        if not rows or not all(any(parts.values()) for parts in medians.values()):
            return 0.0
        called_s = median(after_others(row.called, rank) for row in rows)
        return _unexplained_s(_median_late_s(rows, rank), called_s, medians, rank)

    def _late_s(self, row: Row, rank: int) -> float:
        """By which the others wait for a rank."""
        return row.late_s(rank) - (self._hidden_s[rank] if row.transfer_s is not None else 0.0)

    def _late_in_step(self, row: Row, parts: Mapping[int, StepParts]) -> float:
        """By which the others wait for the last rank in this step: one that once fell behind comes
        later in all steps after it too, and costs nobody anything there.
        """
        rank = row.last_rank
        of_step = {other: by_step.get(row.step) for other, by_step in parts.items()}
        known = {other: each for other, each in of_step.items() if each and any(each.values())}
        if row.transfer_s is None or len(known) < len(parts):
            return self._late_s(row, rank)
        late_s = row.late_s(rank)
        return late_s - _unexplained_s(late_s, after_others(row.called, rank), known, rank)

    def _wait_s(self, place: Place) -> float:
        rows = self._by_place[place]
        return sum(row.last - median(row.arrivals.values()) for row in rows) / len(self._steps)

    def _collective(self, place: Place) -> JobCollective:
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

    def _transfer(self, row: Row) -> float | None:
        """From the last arrival until the first rank went on; None where it is not seen: a call of
        the program waits, and the last collective of a backward.
        """
        if row.transfer_s is not None:
            return row.transfer_s
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

    def _parts(self, rank: int) -> StepParts:
        """For each step what the main thread of a rank did in it, in seconds, without waiting."""
        own = self._ranks[rank]
        ends = own.step_ends
        parts: StepParts = {}
        for step in self._steps:
            rows = [row for row in self._of_steps[step] if rank in row.arrivals]
            if not rows:
                continue
            place = bisect_left(ends, rows[0].called[rank])
            if 0 < place < len(ends):
                parts[step] = _parts_of_step(own, ends[place - 1], ends[place], rows)
        return parts

    def _mean_parts(self, parts: StepParts, steps: Sequence[int]) -> dict[str, float]:
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

    def _rank(self, rank: int, parts: StepParts) -> JobRank:
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

    def _worst(self, rank: int) -> tuple[Place, float]:
        """Return where the rank is late most, and by how much in the median step."""
        late = {
            place: median(self._late_s(row, rank) for row in rows)
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

    def _late(
        self,
        places: Sequence[Place],
        listed: Sequence[JobRank],
        parts: Mapping[int, StepParts],
    ) -> LateRank | None:
        if not self._step_s or len(self._steps) < FEWEST:
            return None
        always = [each for each in listed if self._is_always_late(each)]
        if always:
            worst = max(always, key=lambda each: each.late_s)
            return self._because(worst, worst.late_s, worst.last, self._steps, places)
        return self._rarely(places, listed, parts)

    def _is_always_late(self, rank: JobRank) -> bool:
        """By its median step, and not by chance: of two ranks one is always last. Where the machine
        is busy each of many ranks is last now and then, and the late one less often.
        """
        step_s = self._step_s or 0.0
        if rank.late_s < LATE * step_s:
            return False
        rows = self._by_place[self._worst(rank.rank)[0]]
        late_s = [self._late_s(row, rank.rank) for row in rows]
        interval = median_interval(late_s)
        least = LATE / 2 if rank.last >= LAST else LATE
        if interval is None or interval.low < least * step_s:
            return False
        half = len(rows) // 2
        if min(median(late_s[:half]), median(late_s[half:])) < least * step_s:
            return False
        waits_s = [max(0.0, self._late_s(row, row.last_rank)) for row in rows]
        own_s = sum(s for row, s in zip(rows, waits_s, strict=True) if row.last_rank == rank.rank)
        return own_s >= MOST_WAITING * sum(waits_s)

    def _rarely(
        self,
        places: Sequence[Place],
        listed: Sequence[JobRank],
        parts: Mapping[int, StepParts],
    ) -> LateRank | None:
        """A rank that is late in some steps, and then by much."""
        waits: dict[int, dict[int, float]] = {each.rank: {} for each in listed}
        for step, rows in self._of_steps.items():
            wait_s, rank = max((self._late_in_step(row, parts), row.last_rank) for row in rows)
            waits[rank][step] = max(0.0, wait_s)
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
        places: Sequence[Place],
    ) -> LateRank:
        """`steps`: those in which it is late; the mean over all steps is late_s."""
        part = len(steps) / len(self._steps)
        means = {rank: self._parts_of(rank, steps) for rank in self._ranks}
        others = [rank for rank in self._ranks if rank != late.rank]
        excess = {
            name: part * (means[late.rank][name] - median(means[rank][name] for rank in others))
            for name in PARTS
        }
        # the collector runs in a few steps, which the median one is none of
        collected = [self._mean_parts(self._parts(rank), self._steps)["gc"] for rank in others]
        excess["gc"] = max(excess["gc"], late.gc_s - median(collected))
        cause, excess_s = _cause(late, late_s, excess, self._listed(others))
        worst = self._worst(late.rank)[0]
        return LateRank(
            rank=late.rank,
            late_s=late_s,
            share=min(1.0, late_s / (self._step_s or late_s)),
            last=last,
            cause=cause,
            excess_s=excess_s,
            collective=places.index(worst) if worst in places else 0,
        )

    def _listed(self, ranks: Sequence[int]) -> list[JobRank]:
        return [self._rank(rank, {}) for rank in ranks]


def _median_late_s(rows: Sequence[Row], rank: int) -> float:
    return median(row.late_s(rank) for row in rows)


def _unexplained_s(
    late_s: float, called_s: float, parts: Mapping[int, Mapping[str, float]], rank: int
) -> float:
    """Return the seconds of a rank's lateness that neither it nor its device explains."""
    others = [of_rank for other, of_rank in parts.items() if other != rank]
    longer_s = sum(
        max(0.0, own_s - median(of_rank[name] for of_rank in others))
        for name, own_s in parts[rank].items()
    )
    of_device_s = max(0.0, late_s - max(0.0, called_s))
    return max(0.0, late_s - longer_s - of_device_s)


def _tail(least: int, n: int, chance: float) -> float:
    """Return the probability of at least `least` of n events, each of probability `chance`."""
    return sum(
        comb(n, each) * chance**each * (1 - chance) ** (n - each) for each in range(least, n + 1)
    )


def _cause(
    late: JobRank, late_s: float, excess: Mapping[str, float], others: Sequence[JobRank]
) -> tuple[LateCause, float]:
    """Return what explains at least half of it, and how many seconds."""
    name = max(excess, key=lambda name: excess[name])
    cause, excess_s = _CAUSES[name], excess[name]
    stolen_s = _stolen_s(late, others)
    ran_s = _excess(late.run_s, [other.run_s for other in others])
    if name != "gc" and stolen_s >= STOLEN * max(late_s, excess_s) and stolen_s > ran_s:
        return LateCause.CPU_STOLEN, stolen_s
    delayed_s = _excess(late.delay_s, [other.delay_s for other in others])
    computes = late.run_s is not None and ran_s >= EXPLAINS * late_s
    if name not in ("gc", "loader") and not computes and delayed_s >= EXPLAINS * late_s:
        return LateCause.CPU_STOLEN, delayed_s  # its parts take longer since others have its CPU
    if name not in ("gc", "loader") and _is_throttled(late, others):
        return LateCause.THROTTLED, excess_s
    if excess_s >= EXPLAINS * late_s:
        return cause, excess_s
    return LateCause.UNKNOWN, excess_s


def _stolen_s(late: JobRank, others: Sequence[JobRank]) -> float:
    """Return the seconds that a rank was kept from its CPU beyond what the others are for each
    second that they run: who computes more is kept from it more, too.
    """
    rates = [each.delay_s / each.run_s for each in others if each.delay_s and each.run_s]
    usual_s = median(rates) * (late.run_s or 0.0) if rates else 0.0
    return max(0.0, (late.delay_s or 0.0) - usual_s)


def _excess(own: float | None, others: Iterable[float | None]) -> float:
    known = [other for other in others if other is not None]
    return own - median(known) if own is not None and known else 0.0


def _is_throttled(late: JobRank, others: Sequence[JobRank]) -> bool:
    if _excess(late.slowed, (other.slowed for other in others)) >= SLOWED:
        return True
    clocks = [other.clock for other in others if other.clock is not None]
    return late.clock is not None and bool(clocks) and late.clock <= THROTTLED * median(clocks)


def _parts_of_step(
    rank: RankSpans, begun: float, ended: float, rows: Sequence[Row]
) -> dict[str, float]:
    """Return the seconds of each part of the step between these moments, by its end marks."""
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
    """The part of a span that a rank took itself, by its arrivals in that step."""

    def __init__(self, rank: RankSpans, rows: Sequence[Row]) -> None:
        own = rank.timeline.rank
        self._arrivals = sorted(
            (row.called[own], row.last) for row in rows if row.transfer_s is None
        )

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
