"""The rank whose end stopped the others: killed, failed, or gone while they go on."""

from __future__ import annotations

from signal import SIGTERM
from typing import Any

from gpulab.features import present
from gpulab.features.late.missing import HANGS_S
from gpulab.features.late.result import EndedRank, MissingRank, NamedCollective
from gpulab.features.late.timelines import Call, Timelines
from gpulab.report.report import fields_of
from gpulab.report.state import RunState

_NONE = NamedCollective(name="", sizes=[], line="")


def events_of(state: RunState, feature: str, name: str) -> list[Any]:
    """Return the events of a feature, which may be taken out."""
    events = present(f"{feature}.events")
    return list(state.all(getattr(events, name))) if events else []


def ended_rank(state: RunState, missing: MissingRank | None) -> EndedRank | None:
    """Return the rank that was killed; or else the one that others wait for, if it has ended and
    does not hang; or else the first one that ended, where one of them ended badly.

    Who starts ranks ends the others by SIGTERM, and those that lose their peer fail after it.
    """
    followed = events_of(state, "program", "ProcessFollowed")
    exits, booked = (
        events_of(state, "program", "ChildExited"),
        events_of(state, "bill", "ProcessBooked"),
    )
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
    exact = bill is not None and bill.ended
    # one that was killed said nothing for a while: all ranks make the same steps
    counted = [bill] if bill is not None and exact else list(bills.values())
    last, is_own = _last_call(state.part(Timelines), rank)
    return EndedRank(
        rank=rank,
        code=exit_.code if exit_ else None,
        signal=exit_.signal if exit_ else None,
        steps=max((kind.count for each in counted for kind in each.steps), default=0),
        exact=exact,
        came=is_own,
        **fields_of(last.kind if last else _NONE, "name", "sizes", "line"),
        place=bill.place if bill else "",
    )


def _last_call(timelines: Timelines, rank: int) -> tuple[Call | None, bool]:
    """Return the last collective that a rank came to, or else that others did, and which it is."""
    calls = list(timelines.calls.values())
    own = [each[rank] for each in calls if rank in each]
    known = own or [call for each in calls for call in each.values()]
    return max(known, key=lambda call: call.at, default=None), bool(own)
