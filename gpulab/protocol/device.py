"""A device as torch describes it."""

from __future__ import annotations

import msgspec

from gpulab.protocol.values import Amount, Count, Line, Name


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """`kind` is cpu or cuda. What follows `l2_bytes` is of a GPU; 0 where torch does not say."""

    kind: Name
    name: Line
    uuid: Line | None = None
    threads: Count = 1
    memory_bytes: Count = 0
    l2_bytes: Count = 0
    """Of a CPU the last-level cache."""
    capability: Name | None = None
    """Compute capability, such as 9.0."""
    sms: Count = 0
    sm_mhz: Amount = 0.0
    """The highest clock of the SMs."""
    memory_mhz: Amount = 0.0
    bus_bits: Count = 0

    @property
    def on_gpu(self) -> bool:
        return self.kind == "cuda"
