"""What the ranks of a job said so far, in memory that is bounded: their collectives, and what their
main threads did.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from gpulab.features.late.events import CollectiveKind, Collectives, RankSpan
from gpulab.features.late.result import JobReport

_MOST_CALLS, _MOST_SPANS = 20_000, 100_000
Key = tuple[str, int]
"""A collective of all ranks: its group, and its number there."""


@dataclass(frozen=True)
class Call:
    """One rank's coming to a collective, on its host's clock."""

    kind: CollectiveKind
    at: float
    took_s: float | None


@dataclass
class Timeline:
    """The timeline of one rank."""

    rank: int
    pid: int
    host: str = ""
    at: float = 0.0
    """When it was read last, on its host's clock."""
    heard: float = 0.0
    """The same on the session's."""
    kinds: dict[int, CollectiveKind] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    """The last collective that it came to, by group."""
    spans: deque[RankSpan] = field(default_factory=lambda: deque(maxlen=_MOST_SPANS))
    stack: list[str] = field(default_factory=list)


@dataclass
class Timelines:
    """The timelines of all ranks."""

    ranks: dict[int, Timeline] = field(default_factory=dict)
    calls: dict[Key, dict[int, Call]] = field(default_factory=dict)
    """The oldest first."""
    groups: dict[str, set[int]] = field(default_factory=dict)
    """The ranks that came to a collective of each."""
    shown: tuple[float | None, JobReport | None] = (None, None)
    """What was made of it last, while the program ran, and when."""

    def members(self, group: str) -> set[int]:
        """Ranks that are in a group; in the first one all of them are."""
        return set(self.ranks) if group.endswith(":0") else self.groups[group]

    def add(self, event: Collectives) -> None:
        timeline = self.ranks.get(event.rank)
        if timeline is None or timeline.pid != event.pid:
            if timeline is not None:  # all were started again
                self.calls.clear()
                self.groups.clear()
            timeline = self.ranks[event.rank] = Timeline(event.rank, event.pid)
        timeline.host, timeline.at, timeline.heard = event.host, event.at, event.t
        timeline.stack = event.stack
        for kind in event.kinds:
            timeline.kinds[kind.number] = kind
        timeline.spans.extend(event.spans)
        for call in event.calls:
            collective = timeline.kinds.get(call.kind)
            if collective is None:
                continue
            timeline.newest[collective.group] = call.number
            self.groups.setdefault(collective.group, set()).add(event.rank)
            made = Call(collective, call.at, call.took_s)
            self.calls.setdefault((collective.group, call.number), {})[event.rank] = made
        while len(self.calls) > _MOST_CALLS:
            del self.calls[next(iter(self.calls))]
