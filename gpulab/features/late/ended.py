"""The rank whose end stopped the others: killed, failed, or gone while they go on."""

from __future__ import annotations

from collections.abc import Iterable
from signal import SIGTERM
from typing import TYPE_CHECKING

from gpulab.core.statuses import RankActivity
from gpulab.features.late.missing import HANGS_S
from gpulab.features.late.result import EndedRank, MissingRank

if TYPE_CHECKING:
    from gpulab.features.bill.events import ProcessBooked
    from gpulab.features.late.timelines import Timelines
    from gpulab.features.program.events import ChildExited, ProcessFollowed


def ended_rank(
    timelines: Timelines,
    followed: Iterable[ProcessFollowed],
    exits: Iterable[ChildExited],
    booked: Iterable[ProcessBooked],
    missing: MissingRank | None,
) -> EndedRank | None:
    """Return the rank that was killed; or else the one that others wait for, if it has ended and
    does not hang; or else the first one that ended, where one of them ended badly.

    Who starts ranks ends the others by SIGTERM, and those that lose their peer fail after it.
    """
    ranked = {each.pid: each for each in followed if each.ranked}
    pids = {pid: each.rank for pid, each in ranked.items() if each.parent not in ranked}
    told = {each.pid: each for each in exits if each.pid in pids and each.signal != SIGTERM}
    bills = {each.pid: each for each in booked if each.pid in pids}
    ends = {pid: each.at for pid, each in told.items()}
    ends.update({pid: bill.until for pid, bill in bills.items() if bill.ended})
    killed = [pid for pid, each in told.items() if each.signal]
    awaited = [pid for pid, rank in pids.items() if missing is not None and rank == missing.rank]
    gone = [pid for pid in awaited if pid in ends]
    if not killed and not gone:
        hangs = missing is not None and missing.waiting_s >= HANGS_S
        if hangs or not any(each.code for each in told.values()):
            return None
    first = min(killed or gone or ends, key=lambda pid: ends[pid])
    rank = pids[first]
    exit_, bill = told.get(first), bills.get(first)
    kind = _last_collective(timelines, rank)
    own = timelines.ranks.get(rank)
    marks = sum(span.kind == RankActivity.STEP for span in own.spans) if own else 0
    return EndedRank(
        rank=rank,
        code=exit_.code if exit_ else None,
        signal=exit_.signal if exit_ else None,
        steps=max(marks, sum(steps.count for steps in bill.steps) if bill else 0),
        exact=bool(bill and bill.ended),
        name=kind[0],
        sizes=kind[1],
        line=kind[2],
        place=bill.place if bill else "",
    )


def _last_collective(timelines: Timelines, rank: int) -> tuple[str, list[list[int]], str]:
    """Return the name, sizes and line of the last one that a rank came to, as far as is read."""
    if rank not in timelines.ranks:
        return "", [], ""
    newest = timelines.ranks[rank].newest
    calls = [timelines.calls.get(key, {}).get(rank) for key in newest.items()]
    last = max(filter(None, calls), key=lambda call: call.at, default=None)
    return (last.kind.name, last.kind.sizes, last.kind.line) if last else ("", [], "")
