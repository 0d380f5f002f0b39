"""A device as torch describes it."""

from __future__ import annotations

import msgspec


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """`kind` is cpu or cuda. What follows `l2_bytes` is of a GPU; 0 where torch does not say."""

    kind: str
    name: str
    uuid: str | None = None
    threads: int = 1
    memory_bytes: int = 0
    l2_bytes: int = 0
    """Of a CPU the last-level cache."""
    capability: str | None = None
    """Compute capability, such as 9.0."""
    sms: int = 0
    sm_mhz: float = 0.0
    """The highest clock of the SMs."""
    memory_mhz: float = 0.0
    bus_bits: int = 0

    @property
    def on_gpu(self) -> bool:
        return self.kind == "cuda"
