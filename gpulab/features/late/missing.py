"""The rank that does not come to a collective where others wait."""

from __future__ import annotations

from collections.abc import Iterator

from gpulab.features.late.result import MissingRank
from gpulab.features.late.rows import clock_offsets
from gpulab.features.late.timelines import Call, Timelines

HANGS_S = 3.0
"""That a rank has not come for: with the readings of each second it is named within five."""
_SILENT_S = 10.0
"""Without a reading: a rank reads less often where that takes long."""


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
            waiting_s = now - since + (silent_s if silent_s > _SILENT_S else 0.0)
            kind = calls[first].kind
            found.append(
                MissingRank(
                    rank=rank,
                    name=kind.name,
                    sizes=kind.sizes,
                    line=kind.line,
                    waiting_s=max(0.0, waiting_s),
                    stack=timeline.stack if silent_s <= _SILENT_S else [],
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
