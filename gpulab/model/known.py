"""What is known of a device's ceilings while they are being measured."""

from __future__ import annotations

import msgspec

from gpulab.model.ceilings import LAUNCH
from gpulab.model.events import CeilingsMeasured


def known_after(before: CeilingsMeasured | None, event: CeilingsMeasured) -> CeilingsMeasured:
    """The event; until it has the launches, which come last, also what it lacks of those before: of an earlier run."""
    if before is None or any(one.roof == LAUNCH for one in event.ceilings):
        return event
    fresh = {(one.roof, one.kind) for one in event.ceilings}
    kept = [one for one in before.ceilings if (one.roof, one.kind) not in fresh]
    held = before.cache_bytes if event.cache_bytes is None else event.cache_bytes
    return msgspec.structs.replace(event, ceilings=(*event.ceilings, *kept), cache_bytes=held)
