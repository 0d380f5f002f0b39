"""The rank that does not come to a collective where others wait."""

from __future__ import annotations

from collections.abc import Iterator

from gpulab.features.late.result import MissingRank
from gpulab.features.late.rows import clock_offsets
from gpulab.features.late.timelines import Timelines
from gpulab.report.report import fields_of

HANGS_S = 3.0
"""That a rank has not come for: with the readings of each second it is named within five."""
_SILENT_S = 10.0
"""Without a reading: a rank reads less often where that takes long."""


def missing_rank(timelines: Timelines) -> MissingRank | None:
    """The rank that did not come to a collective for longest, while another waits there."""
    return max(_missing(timelines), key=lambda each: each.waiting_s, default=None)


def _missing(timelines: Timelines) -> Iterator[MissingRank]:
    """Those of the first collective of each group that not all came to, of its newest ones."""
    ranks, offsets = timelines.ranks, clock_offsets(timelines)
    heard = max(timeline.heard for timeline in ranks.values())
    for group in timelines.groups:
        newest = {rank: ranks[rank].newest.get(group, 0) for rank in timelines.members(group)}
        least = min(newest.values())
        calls = timelines.calls.get((group, least + 1))
        if not calls:
            continue
        came = {rank: call.at - offsets[ranks[rank].host] for rank, call in calls.items()}
        first = min(came, key=lambda rank: came[rank])
        for timeline in [ranks[rank] for rank, number in newest.items() if number <= least]:
            silent_s = heard - timeline.heard
            silent_s = silent_s if silent_s > _SILENT_S else 0.0
            waiting_s = timeline.at - offsets[timeline.host] - came[first] + silent_s
            yield MissingRank(
                rank=timeline.rank,
                **fields_of(calls[first].kind, "name", "sizes", "line"),
                waiting_s=max(0.0, waiting_s),
                stack=[] if silent_s else timeline.stack,
            )
