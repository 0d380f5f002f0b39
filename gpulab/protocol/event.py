"""What every event has: when it happened, and in which process of the run."""

from __future__ import annotations

from time import monotonic

import msgspec

from gpulab.protocol.values import Count, Moment


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """`t`: seconds on the monotonic clock that all processes of a machine share; `rank`: 0 for the only worker."""

    t: Moment = msgspec.field(default_factory=monotonic)
    rank: Count = 0
