"""What a worker reports of roofs that it measures between the blocks of a run."""

from __future__ import annotations

from gpulab.protocol.event import Event
from gpulab.protocol.values import Index, Name, PositiveAmount, PositiveCount, StepTime


class RoofProbed(Event, frozen=True):
    """A roof in one process: the median seconds of a step of its probe, which moves or computes `amount`.

    `ratios`: for each variant the median of those seconds over the variant's, of blocks in the same rounds.
    """

    process: Index
    roof: Name
    kind: Name
    amount: PositiveCount
    """Bytes, or FLOPs."""
    time_s: StepTime
    blocks: PositiveCount
    ratios: dict[Name, PositiveAmount] = {}
