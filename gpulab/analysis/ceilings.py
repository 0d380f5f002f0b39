"""Ceilings from timings, and which of all the known ones limits a piece of work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from gpulab.protocol.ceiling import LAUNCH, MATRIX, MEASURED, MEMORY, SOURCES, VECTOR, Ceiling
from gpulab.protocol.finding import Finding


def ceiling_from(
    roof: str,
    kind: str,
    amount: float,
    times_s: Sequence[float],
    *,
    method: Finding | None = None,
    sm_mhz: float | None = None,
) -> Ceiling:
    """The ceiling that timings of one and the same work make: `amount` of bytes or FLOPs, or 0 for the time itself.

    Memory, caches and links move bytes; matrix and vector units do FLOPs.
    """
    values = [amount / time_s for time_s in times_s] if amount else list(times_s)
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
        method=method,
        sm_mhz=sm_mhz,
    )


@dataclass(frozen=True)
class RoofSet:
    """What limits a piece of work: measured ceilings where they are steady, then derived ones, then the datasheet's."""

    ceilings: Sequence[Ceiling]

    def best(self, roof: str, kinds: Iterable[str] | None = None) -> Ceiling | None:
        """The highest of a roof by its best source; None where nothing is known of it."""
        allowed = None if kinds is None else set(kinds)
        for source in SOURCES:
            candidates = [
                ceiling
                for ceiling in self.ceilings
                if ceiling.roof == roof
                and ceiling.source == source
                and ceiling.steady
                and (allowed is None or ceiling.kind in allowed)
            ]
            if candidates:
                return max(candidates, key=lambda ceiling: ceiling.best)
        return None

    def slowest_stream(self) -> Ceiling | None:
        """The slowest way of doing nothing but move bytes through device memory, of those that were measured."""
        streams = [
            ceiling
            for ceiling in self.ceilings
            if ceiling.roof == MEMORY and ceiling.source == MEASURED and ceiling.steady
        ]
        return min(streams, key=lambda ceiling: ceiling.best, default=None)

    def compute(self, dtype: str | None, roof: str | None = None) -> Ceiling | None:
        """The ceiling of arithmetic in a dtype: of the `roof` named, matrix or vector, or the higher of the two."""
        by_roof = {units: self.best(units, (dtype or "fp32",)) for units in (MATRIX, VECTOR)}
        if named := by_roof.get(roof or ""):
            return named
        return max(filter(None, by_roof.values()), key=lambda ceiling: ceiling.best, default=None)

    def launch_s(self, *, on_device: bool) -> float | None:
        """What starting one operation costs: the host, or between two of them on the device."""
        kind = "spacing" if on_device else "enqueue"
        # However the machine was disturbed: it is a floor.
        return next((ceiling.best for ceiling in self.ceilings if ceiling.key == (LAUNCH, kind)), None)

    def unsteady(self) -> list[Ceiling]:
        """Measured, but too unsteady to be used."""
        return [ceiling for ceiling in self.ceilings if not ceiling.steady and ceiling.roof != LAUNCH]
