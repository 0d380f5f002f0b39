"""Ceilings from timings, and which of all the known ones limits a piece of work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from gpulab.analysis.statistics import median_interval
from gpulab.protocol.ceiling import COSTS, LAUNCH, MATRIX, MEASURED, MEMORY, PAGE_FAULT, SOURCES, VECTOR, Ceiling
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
    values = sorted(amount / time_s for time_s in times_s) if amount else sorted(times_s)
    middle = median(values)
    interval = median_interval(values)
    low, _, high = quantiles(values, n=4) if len(values) > 1 else (middle, middle, middle)
    unit = "s" if not amount else "FLOP/s" if roof in (MATRIX, VECTOR) else "B/s"
    return Ceiling(
        roof=roof,
        kind=kind,
        unit=unit,
        best=values[-1] if amount else values[0],
        median=middle,
        median_low=interval.low if interval else None,
        median_high=interval.high if interval else None,
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
        """The highest of a roof by its best source; None where nothing is known of it.

        What was measured between the blocks of the run itself comes before what was measured at another time.
        """
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
                return max(candidates, key=lambda ceiling: (ceiling.processes > 0, ceiling.median))
        return None

    def slowest_stream(self) -> tuple[str, float] | None:
        """The slowest way of doing nothing but move bytes through device memory, as a part of the memory roof.

        Both as they were measured one after the other: the roof that is measured beside a run drifts with the machine.
        """
        roof = self.best(MEMORY)
        streams = [
            ceiling
            for ceiling in self.ceilings
            if ceiling.roof == MEMORY and ceiling.source == MEASURED and ceiling.steady and not ceiling.processes
        ]
        same = next((ceiling for ceiling in streams if roof and ceiling.key == roof.key), None)
        if same is None:
            return None
        slowest = min(streams, key=lambda ceiling: ceiling.median)
        return slowest.kind, slowest.median / same.median

    def compute(self, dtype: str | None) -> Ceiling | None:
        """The ceiling of arithmetic in a dtype: the higher one of matrix and vector units.

        What can be reached in a dtype does not depend on which units some scenario is about.
        """
        ceilings = [self.best(units, (dtype or "fp32",)) for units in (MATRIX, VECTOR)]
        known = [ceiling for ceiling in ceilings if ceiling]
        # The roof that was measured in the run itself stands for the higher of the two at another time.
        return max(known, key=lambda ceiling: (ceiling.processes > 0, ceiling.median), default=None)

    def launch_s(self) -> Ceiling | None:
        """What starting one operation costs the host."""
        return self._cost(LAUNCH, "enqueue")

    def fault_s(self) -> Ceiling | None:
        """What one page that a process touches for the first time costs it."""
        return self._cost(PAGE_FAULT, "")

    def _cost(self, roof: str, kind: str) -> Ceiling | None:
        return next((ceiling for ceiling in self.ceilings if ceiling.key == (roof, kind)), None)

    def unsteady(self) -> list[Ceiling]:
        """Measured, but too unsteady to be used, and not measured between the blocks of the run instead."""
        beside = {ceiling.key for ceiling in self.ceilings if ceiling.processes}
        return [
            ceiling
            for ceiling in self.ceilings
            if not ceiling.steady and ceiling.roof not in COSTS and ceiling.key not in beside
        ]
