"""What the other GPUs of a machine cost each of them: the same runs alone, and all together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from gpulab.report.report import RunReport, Time, VariantReport

Span = tuple[float, float]
"""Start and end of the rounds of a run, on the clock of the events."""


class DeviceCost(msgspec.Struct, frozen=True, kw_only=True):
    """One variant on one device: seconds per step alone, and with all devices at work.

    `cost` is the second over the first: 1.1 where the others cost it 10 %. The ends hold both
    intervals, and are None where a run has too few processes for one. `overlap` is the share of its
    rounds in which all others measured too.
    """

    device: str
    name: str = ""
    uuid: str | None = None
    variant: str
    alone: Time | None = None
    together: Time | None = None
    cost: float | None = None
    low: float | None = None
    high: float | None = None
    overlap: float | None = None


def costs(
    devices: Sequence[str],
    alone: Sequence[RunReport],
    together: Sequence[RunReport],
    spans: Sequence[Span],
) -> list[DeviceCost]:
    """An entry for each variant of each device, which are in one order in all arguments; `together`
    and `spans` are empty where there is one device.
    """
    entries: list[DeviceCost] = []
    for number, (device, report) in enumerate(zip(devices, alone, strict=False)):
        other = together[number] if number < len(together) else None
        share = overlap(spans, number) if number < len(spans) else None
        entries += _entries(device, report, other, share)
    return entries


def overlap(spans: Sequence[Span], number: int) -> float | None:
    """The share of one span that lies in all of them; None where it has no length."""
    start = max(begin for begin, _ in spans)
    end = min(end for _, end in spans)
    length = spans[number][1] - spans[number][0]
    return max(0.0, end - start) / length if length > 0 else None


def _entries(
    device: str, alone: RunReport, together: RunReport | None, share: float | None
) -> Iterator[DeviceCost]:
    beside: dict[str, VariantReport] = {}
    if together is not None:
        beside = {variant.name: variant for variant in together.variants}
    for variant in alone.variants:
        other = beside.get(variant.name)
        time_s = variant.time_s
        other_s = other.time_s if other else None
        cost = low = high = None
        if time_s and other_s:
            cost = other_s.median / time_s.median
            if time_s.low and time_s.high and other_s.low and other_s.high:
                low = other_s.low / time_s.high
                high = other_s.high / time_s.low
        yield DeviceCost(
            device=device,
            name=alone.device.name if alone.device else "",
            uuid=alone.device.uuid if alone.device else None,
            variant=variant.name,
            alone=time_s,
            together=other_s,
            cost=cost,
            low=low,
            high=high,
            overlap=share,
        )
