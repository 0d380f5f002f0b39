"""Ceilings: the most that a device's memory, caches, arithmetic, launches and links can do, and how that is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

import msgspec

MEASURED, DERIVED, DATASHEET = "measured", "derived", "datasheet"
UNSTEADY = 1.5
"""A best figure this many times the median was luck, or the median was disturbed: neither is a ceiling."""
MEMORY, CACHE, MATRIX, VECTOR, LAUNCH = "device memory", "cache", "matrix", "vector", "launch"
LINKS = ("host to device", "device to host")
FAMILIES = {"fp16": "fp16/bf16", "bf16": "fp16/bf16"}


def family(dtype: str | None) -> str:
    """The types that share a roof; work without a type is fp32."""
    return FAMILIES.get(dtype or "fp32", dtype or "fp32")


class Ceiling(msgspec.Struct, frozen=True, kw_only=True):
    """One ceiling, in B/s, FLOP/s, or s where less is better.

    `roof` is what limits, one of those that scenarios name; `kind` how, or in which type: triad, fp32, pinned.
    `spread` is the interquartile range over the median.
    """

    roof: str
    kind: str
    unit: str
    best: float
    median: float
    spread: float = 0.0
    samples: int = 0
    source: str = MEASURED
    how: str = ""
    sm_mhz: float | None = None

    @property
    def name(self) -> str:
        return f"{self.roof} {self.kind}".rstrip()

    @property
    def steady(self) -> bool:
        """Whether best and median agree well enough to be believed."""
        return max(self.best, self.median) <= UNSTEADY * min(self.best, self.median)


def ceiling_of(
    roof: str, kind: str, amount: float, times_s: Sequence[float], *, how: str = "", sm_mhz: float | None = None
) -> Ceiling:
    """The ceiling that timings of one and the same work make: `amount` of bytes or FLOPs, or 0 for the time itself.

    Memory, caches and links move bytes; matrix and vector units do FLOPs.
    """
    values = [amount / one for one in times_s] if amount else list(times_s)
    middle = median(values)
    low, _, high = quantiles(values, n=4) if len(values) > 1 else (middle, middle, middle)
    unit = "s" if not amount else "FLOP/s" if roof in (MATRIX, VECTOR) else "B/s"
    return Ceiling(
        roof=roof,
        kind=kind,
        unit=unit,
        best=max(values) if amount else min(values),
        median=middle,
        spread=(high - low) / middle,
        samples=len(values),
        how=how,
        sm_mhz=sm_mhz,
    )


@dataclass(frozen=True)
class Roofs:
    """What limits a piece of work: measured ceilings where they are steady, then derived ones, then the datasheet's."""

    ceilings: Sequence[Ceiling]

    def best(self, roof: str, kinds: Iterable[str] | None = None) -> Ceiling | None:
        """The highest of a roof; None where nothing is known of it."""
        wanted = None if kinds is None else set(kinds)
        for source in (MEASURED, DERIVED, DATASHEET):
            found = [
                one
                for one in self.ceilings
                if one.roof == roof and one.source == source and one.steady and (wanted is None or one.kind in wanted)
            ]
            if found:
                return max(found, key=lambda one: one.best)
        return None

    def slowest_stream(self) -> Ceiling | None:
        """The slowest way of doing nothing but move bytes through device memory, of those that were measured."""
        found = [one for one in self.ceilings if one.roof == MEMORY and one.source == MEASURED and one.steady]
        return min(found, key=lambda one: one.best, default=None)

    def compute(self, dtype: str | None, roof: str | None = None) -> Ceiling | None:
        """Where arithmetic in a type ends: the `roof` of its matrix or vector units, or the higher of the two."""
        by_roof = {one: self.best(one, (dtype or "fp32",)) for one in (MATRIX, VECTOR)}
        if wanted := by_roof.get(roof or ""):
            return wanted
        return max((one for one in by_roof.values() if one), key=lambda one: one.best, default=None)

    def launch_s(self, *, on_device: bool) -> float | None:
        """What starting one operation costs: the host, or between two of them on the device."""
        kind = "spacing" if on_device else "enqueue"
        found = [one for one in self.ceilings if (one.roof, one.kind) == (LAUNCH, kind)]
        return found[0].best if found else None  # a floor, however the machine was disturbed

    def unsteady(self) -> list[Ceiling]:
        """Measured, and not to be believed."""
        return [one for one in self.ceilings if not one.steady and one.roof != LAUNCH]
