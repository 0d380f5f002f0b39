"""What every event has: when it happened."""

from __future__ import annotations

from time import monotonic

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """`t`: seconds on the monotonic clock that all processes of a machine share."""

    t: float = msgspec.field(default_factory=monotonic)
