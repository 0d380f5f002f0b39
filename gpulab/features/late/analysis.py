"""Who is late: collectives of all ranks are matched by group and number, and the seconds between
the ranks' arrivals are put on what each of them did before.

A rank that waits in a collective looks as slow as the one that it waits for. So a part of a step
counts without waiting: that of a rank is what it did until it came.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import comb
from statistics import fmean, median

from gpulab.features.late.events import RankActivity
from gpulab.features.late.missing import missing_rank
from gpulab.features.late.parts import PARTS, parts_by_step
from gpulab.features.late.result import JobCollective, JobRank, JobReport, LateCause, LateRank
from gpulab.features.late.rows import Place, RankSpans, Row, after_others, clock_offsets, rows_of
from gpulab.features.late.timelines import Timelines
from gpulab.report.report import fields_of

LATE, MOST_WAITING = 0.05, 0.75
"""Of a step that a rank is late, and of all waiting that is for it: from there on. Where others
make more of it, the work is unequal, and no one rank is late.
"""
RARELY, _FEWEST_LATE, _BY_CHANCE = 0.03, 3, 0.001
"""In which share of the steps it is late, in how many, and how likely any of the ranks is last in
so many where all are alike.
"""
EXPLAINS = 0.5
"""Of its lateness that a cause must explain."""
SLOW, BEYOND_OTHERS = 0.25, 2.5
"""Of a step that one collective takes once all have come, and over any other one of the step."""
FEWEST = 8
"""Steps, before somebody is late."""
_LIVE_SPANS = 3_000
"""The newest ones, while the program runs."""
_MOST_COLLECTIVES = 8


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
    job = _Job(ranks, rows)
    collectives = job.collectives()
    return JobReport(
        steps=len(job.of_steps),
        step_s=job.step_s,
        ranks=[job.rank(rank) for rank in ranks],
        collectives=collectives,
        late=job.late(collectives),
        slow=job.slow(collectives),
        missing=missing,
    )


class _Job:
    """The ranks over the collectives that count."""

    def __init__(self, ranks: Mapping[int, RankSpans], rows: Sequence[Row]) -> None:
        self._ranks = ranks
        steps = len({row.step for row in rows})
        counts = Counter(row.place for row in rows)
        # one that most steps lack, such as a barrier at the end of an epoch, is no part of a step
        often = [row for row in rows if counts[row.place] >= steps / 4] or rows
        self._by_place: dict[Place, list[Row]] = defaultdict(list)
        self.of_steps: dict[int, list[Row]] = defaultdict(list)
        for row in often:
            self._by_place[row.place].append(row)
            self.of_steps[row.step].append(row)
        self.step_s = self._step_time()
        self._parts = {rank: parts_by_step(spans, self.of_steps) for rank, spans in ranks.items()}
        self._waits = self._waited()

    def _step_time(self) -> float | None:
        """Between the first collectives of steps in a row. Of a device their mean: its host runs
        ahead, and waits now and then for several steps together.
        """
        firsts = {step: min(row.last for row in rows) for step, rows in self.of_steps.items()}
        times_s = [firsts[step + 1] - at for step, at in firsts.items() if step + 1 in firsts]
        times_s = [time_s for time_s in times_s if time_s > 0]
        if not times_s:
            return None
        by_device = any(row.transfer_s is not None for row in self.of_steps[min(firsts)])
        return fmean(times_s) if by_device else median(times_s)

    def _longer(self, rank: int, step: int) -> dict[str, float]:
        """Return what each part of a step takes longer on a rank than on the others; empty where
        not all ranks know their parts.
        """
        known = [parts[step] for parts in self._parts.values() if any(parts.get(step, {}).values())]
        if len(known) < len(self._ranks):
            return {}
        own = self._parts[rank][step]
        others = [each for each in known if each is not own]
        return {name: own[name] - median(each[name] for each in others) for name in PARTS}

    def _late_s(self, row: Row, rank: int) -> float:
        """Return by how much the others wait for a rank.

        With NCCL a main thread goes on while its device waits: it loads the next batch meanwhile,
        and comes to the next collective that much sooner. What the others lose is what the late
        rank does longer than they, and what its device takes longer.
        """
        late_s = after_others(row.arrivals, rank)
        longer = self._longer(rank, row.step) if row.transfer_s is not None else {}
        if not longer:
            return late_s
        longer_s = sum(max(0.0, part_s) for part_s in longer.values())
        of_device_s = max(0.0, late_s - max(0.0, after_others(row.called, rank)))
        return min(late_s, longer_s + of_device_s)

    def collectives(self) -> list[JobCollective]:
        """Those with most waiting first."""
        found = [self._collective(place, rows) for place, rows in self._by_place.items()]
        return sorted(found, key=lambda each: -each.wait_s)[:_MOST_COLLECTIVES]

    def _collective(self, place: Place, rows: Sequence[Row]) -> JobCollective:
        transfers = [time_s for row in rows if (time_s := self._transfer(row)) is not None]
        wait_s = sum(row.last - median(row.arrivals.values()) for row in rows)
        return JobCollective(
            **fields_of(rows[0].kind, "group", "name", "sizes", "line"),
            nth=place[1],
            steps=len(rows),
            wait_s=wait_s / len(self.of_steps),
            transfer_s=median(transfers) if transfers else None,
            last_rank=Counter(row.last_rank for row in rows).most_common(1)[0][0],
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
                own = [each.arrivals.get(rank, at) for each in self.of_steps[row.step]]
                if all(other <= at or other > span[1] for other in own):
                    ends.append(span[1])
        if len(ends) < len(row.arrivals) or min(ends) <= row.last:
            return None
        return min(ends) - row.last

    def slow(self, collectives: Sequence[JobCollective]) -> int | None:
        """One that takes much longer than all others: many ranks on few cores make all slow."""
        known = [(each.transfer_s, at) for at, each in enumerate(collectives) if each.transfer_s]
        if not self.step_s or len(self.of_steps) < FEWEST or len(known) < 2:
            return None
        (second_s, _), (longest_s, at) = sorted(known)[-2:]
        slow = longest_s >= SLOW * self.step_s and longest_s >= BEYOND_OTHERS * second_s
        return at if slow else None

    def _waited(self) -> dict[int, dict[int, float]]:
        """Return by rank the steps in which it came last, and how long the others waited for it."""
        waits: dict[int, dict[int, float]] = {rank: {} for rank in self._ranks}
        for step, rows in self.of_steps.items():
            late_s, rank = max((self._late_s(row, row.last_rank), row.last_rank) for row in rows)
            waits[rank][step] = max(0.0, late_s)
        return waits

    def rank(self, rank: int) -> JobRank:
        """A rank in the mean step."""
        own, steps = self._waits[rank], len(self.of_steps)
        known = self._parts[rank].values()
        return JobRank(
            rank=rank,
            host=self._ranks[rank].timeline.host.partition(" ")[0],
            late_s=sum(own.values()) / steps,
            last=len(own) / steps,
            **{
                f"{name}_s": fmean(each[name] for each in known) if known else 0.0 for name in PARTS
            },
        )

    def late(self, collectives: Sequence[JobCollective]) -> LateRank | None:
        """The rank that most of the waiting is for, in each step or in some, and not by chance."""
        steps, step_s, waits = len(self.of_steps), self.step_s, self._waits
        if not step_s or steps < FEWEST:
            return None
        total_s = sum(sum(of_rank.values()) for of_rank in waits.values())
        rank, own = max(waits.items(), key=lambda each: sum(each[1].values()))
        late_s = sum(own.values()) / steps
        if late_s < LATE * step_s or late_s * steps < MOST_WAITING * total_s:
            return None
        newest = sorted(self.of_steps)[steps // 2 :]
        if sum(own.get(step, 0.0) for step in newest) < LATE / 2 * step_s * len(newest):
            return None  # it was late once, as while it filled a cache
        much = [step for step, wait_s in own.items() if wait_s >= LATE * step_s]
        count = sum(s >= LATE * step_s for of_rank in waits.values() for s in of_rank.values())
        chance = _tail(len(much), count, 1 / len(waits)) * len(waits)
        if len(much) < max(_FEWEST_LATE, RARELY * steps) or chance > _BY_CHANCE:
            return None
        longer = [self._longer(rank, step) for step in much]
        excess = {name: sum(each.get(name, 0.0) for each in longer) / steps for name in PARTS}
        name = max(excess, key=lambda name: excess[name])
        explained = excess[name] >= EXPLAINS * late_s
        worst = [at for at, each in enumerate(collectives) if each.last_rank == rank]
        return LateRank(
            rank=rank,
            late_s=late_s,
            share=min(1.0, late_s / step_s),
            last=len(own) / steps,
            cause=LateCause(name) if explained else LateCause.UNKNOWN,
            excess_s=excess[name],
            collective=worst[0] if worst else 0,
        )


def _tail(least: int, n: int, chance: float) -> float:
    """Return the probability of at least `least` of n events, each of probability `chance`."""
    return sum(
        comb(n, each) * chance**each * (1 - chance) ** (n - each) for each in range(least, n + 1)
    )
