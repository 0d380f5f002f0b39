"""What a rank of a followed program did: its collectives, and the spans of its main thread."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gpulab.core.events import VariantEvent
from gpulab.core.values import Count, Line, Moment, Seconds


class RankActivity(StrEnum):
    """An activity of the main thread of a rank: waiting for its DataLoader, in a part of the step,
    collecting garbage, in a call of a collective, at the end of a step, or taken by the follower.
    """

    LOADER = "loader"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    GC = "gc"
    CALL = "call"
    STEP = "step"
    FOLLOWING = "following"


class CollectiveKind(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Calls of one collective that are alike on a rank, by a number of that rank's own.

    `group` is backend and name of the process group, `line` that of the program which calls it,
    empty where torch does so by itself, as for buckets of gradients.
    """

    number: Count
    group: Line
    name: Line
    sizes: list[list[Count]]
    line: Line = ""


class CollectiveCall(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One call of a rank: `kind` by its number, `number` within its group, the same on all ranks.

    `at`: when it came, on the monotonic clock of its host. `took_s`: on a device, from the rank's
    arrival there to the end.
    """

    kind: Count
    number: Count
    at: Moment
    took_s: Seconds | None = None


class RankSpan(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A span of the main thread of a rank."""

    kind: RankActivity
    begun: Moment
    ended: Moment


class Collectives(VariantEvent, frozen=True, kw_only=True):
    """The activity of a rank of a program since the last such event: its collectives by torch's
    flight recorder, and the spans of its main thread; all times on the monotonic clock of its
    `host`, on which it is now `at`.

    `stack` says where it stands, the innermost line first, where nothing came for a while.
    """

    pid: Count
    host: Line
    at: Moment
    kinds: list[CollectiveKind] = []
    calls: list[CollectiveCall] = []
    spans: list[RankSpan] = []
    stack: list[Line] = []
