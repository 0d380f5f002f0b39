"""An operation of a profile: how often it ran, and for how long."""

from __future__ import annotations

import msgspec

from gpulab.protocol.values import Amount, Number, PositiveCount, Text


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """A row: calls, and their seconds less those of the operations within them; of a window, or of a step.

    `share` is of the window; rows of several threads or streams may sum to more than 1. `shapes` are those of the
    inputs, such as "64x32, 32", and empty for a kernel. `rows` is over 1 where this one sums the rest of a table.
    """

    name: Text
    calls: Amount
    self_s: Number
    share: Number
    shapes: Text
    on_device: bool
    rows: PositiveCount = 1
