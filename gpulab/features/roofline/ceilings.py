"""Ceilings from timings, what a GPU's datasheet says, and which of all the known ones limits a
piece of work.

Dense rates with fp32 accumulation, from NVIDIA's datasheets and architecture whitepapers of each
product.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf
from statistics import median, quantiles

from gpulab.core.findings import Finding
from gpulab.core.machine import Device
from gpulab.core.payloads import (
    CACHE,
    COSTS,
    DATASHEET,
    DERIVED,
    LAUNCH,
    MATRIX,
    MEASURED,
    MEMORY,
    PAGE_FAULT,
    SOURCES,
    VECTOR,
)
from gpulab.features.roofline.events import Ceiling
from gpulab.features.roofline.findings import datasheet, memory_clock, sm_clock
from gpulab.scenario import GiB
from gpulab.stats.statistics import median_interval


def ceiling_from(
    roof: str,
    kind: str,
    amount: float,
    times_s: Sequence[float],
    *,
    method: Finding | None = None,
    sm_mhz: float | None = None,
) -> Ceiling:
    """The ceiling that timings of one and the same work make: `amount` of bytes or FLOPs, or 0 for
    the time itself.
    """
    values = sorted(amount / time_s for time_s in times_s) if amount else sorted(times_s)
    middle = median(values)
    interval = median_interval(values)
    low, _, high = quantiles(values, n=4) if len(values) > 1 else (middle, middle, middle)
    return Ceiling(
        roof=roof,
        kind=kind,
        unit=unit_of(roof) if amount else "s",
        best=values[-1] if amount else values[0],
        median=middle,
        median_low=interval.low if interval else None,
        median_high=interval.high if interval else None,
        spread=(high - low) / middle,
        samples=len(values),
        method=method,
        sm_mhz=sm_mhz,
    )


def _rank(ceiling: Ceiling) -> tuple[int, bool, float]:
    """The first is the best."""
    return SOURCES.index(ceiling.source), not ceiling.processes, -ceiling.median


@dataclass(frozen=True)
class RoofSet:
    """The roofs of work: measured ceilings that are steady, then derived, then the datasheet's."""

    ceilings: Sequence[Ceiling]

    def by_source(self, roof: str, kinds: Collection[str] | None = None) -> list[Ceiling]:
        """The highest of a roof by each source that knows it, the best source first.

        What was measured between the blocks of the run itself comes before what was measured at
        another time.
        """
        known = [
            ceiling
            for ceiling in self.ceilings
            if ceiling.roof == roof and ceiling.steady and (kinds is None or ceiling.kind in kinds)
        ]
        known.sort(key=_rank)
        return [next(of_source) for _, of_source in groupby(known, lambda each: each.source)]

    def best(self, roof: str, kinds: Collection[str] | None = None) -> Ceiling | None:
        """The highest of a roof by its best source; None where nothing is known of it."""
        return next(iter(self.by_source(roof, kinds)), None)

    def slowest_stream(self) -> tuple[str, float]:
        """The slowest way of doing nothing but move bytes through device memory, as a part of the
        memory roof; the whole where none is known.

        Both as they were measured one after the other: the roof that is measured beside a run
        drifts with the machine.
        """
        roof = self.best(MEMORY)
        streams = {
            ceiling.key: ceiling
            for ceiling in self.ceilings
            if ceiling.roof == MEMORY and ceiling.source == MEASURED and not ceiling.processes
        }
        if roof is None or roof.key not in streams:
            return "", 1.0
        steady = [ceiling for ceiling in streams.values() if ceiling.steady]
        slowest = min(steady, key=lambda ceiling: ceiling.median, default=roof)
        return slowest.kind, slowest.median / streams[roof.key].median

    def compute(self, dtype: str | None) -> Ceiling | None:
        """The ceiling of arithmetic in a dtype: the higher one of matrix and vector units.

        What can be reached in a dtype does not depend on which units some scenario is about.
        """
        ceilings = [self.best(units, (dtype or "fp32",)) for units in (MATRIX, VECTOR)]
        known = [ceiling for ceiling in ceilings if ceiling]
        # The roof that was measured in the run itself stands for the higher of the two at another
        # time.
        return max(known, key=lambda ceiling: (ceiling.processes > 0, ceiling.median), default=None)

    def cost(self, roof: str) -> Ceiling | None:
        """Return what starting one operation costs the host, or a page that a process touches for
        the first time.
        """
        keys = ((LAUNCH, "enqueue"), (PAGE_FAULT, ""))
        return next(
            (each for each in self.ceilings if each.roof == roof and each.key in keys), None
        )

    def unsteady(self) -> list[Ceiling]:
        """Measured, too unsteady to be used, and not measured between the run's blocks instead."""
        beside = {ceiling.key for ceiling in self.ceilings if ceiling.processes}
        return [
            ceiling
            for ceiling in self.ceilings
            if not ceiling.steady and ceiling.roof not in COSTS and ceiling.key not in beside
        ]


_MEGA = 1e6
_DATA_RATE = 2
"""Transfers per memory clock, as the driver names that clock."""
_SHEET_KINDS = ("fp32", "tf32", "fp16", "bf16", "fp8")
_SHEETS: tuple[tuple[str, float, float, tuple[float, ...]], ...] = (
    ("V100-SXM2", inf, 900, (15.7, 0, 125, 0, 0)),
    ("T4", inf, 320, (8.1, 0, 65, 0, 0)),
    ("A100-SXM4-40GB", inf, 1555, (19.5, 156, 312, 312, 0)),
    ("A100-SXM4-80GB", inf, 2039, (19.5, 156, 312, 312, 0)),
    ("L4", inf, 300, (30.3, 60, 121, 121, 242)),
    ("L40S", inf, 864, (91.6, 183, 362, 362, 733)),
    ("RTX 3090", inf, 936, (35.6, 35.6, 71, 71, 0)),
    ("RTX 4090", inf, 1008, (82.6, 82.6, 165, 165, 330)),
    ("RTX 5090", inf, 1792, (104.8, 104.8, 209.5, 209.5, 419)),
    ("H100 PCIe", inf, 2000, (51, 378, 756, 756, 1513)),
    ("H100 80GB HBM3", inf, 3350, (67, 494, 989, 989, 1979)),
    ("H200", inf, 4800, (67, 494, 989, 989, 1979)),
    ("GH200", 100, 4000, (67, 494, 989, 989, 1979)),
    ("GH200", inf, 4900, (67, 494, 989, 989, 1979)),
    ("B200", inf, 8000, (75, 1100, 2250, 2250, 4500)),
)
"""By the name that the driver gives, and the memory in GiB below which it holds where two share a
name: GB/s, and TFLOP/s by dtype, 0 where the device has no units for it.
"""
_SUFFIX = r"(-\d+GB)?( \d+GB?( HBM3e?)?)?$"  # a Ti, a D or a Laptop GPU is another product
_LANES_FP64 = {(7, 0): 32, (8, 0): 32, (9, 0): 64, (10, 0): 64}
_TENSOR = {
    (7, 0): 1024,
    (7, 2): 1024,
    (7, 5): 1024,
    (8, 0): 2048,
    (9, 0): 4096,
    (10, 0): 8192,
    (10, 3): 8192,
}
"""fp16 FLOP per clock of one SM's tensor cores; other capabilities are those of cards, below."""
_TENSOR_GEFORCE = 512
TENSOR_DTYPES = {
    "fp16": ((7, 0), 1),
    "tf32": ((8, 0), 0.5),
    "bf16": ((8, 0), 1),
    "fp8": ((8, 9), 2),
    "int8": ((7, 5), 2),
}
"""Since which capability the tensor cores take a dtype, and its rate over fp16's."""


def nominal_ceilings(device: Device) -> list[Ceiling]:
    """A GPU's datasheet ceilings, where it is listed, and those derived from clocks and widths."""
    if not device.on_gpu:
        return []
    return [*_sheet_ceilings(device), *_derived_of_memory(device), *_derived_of_sms(device)]


def _sheet_ceilings(device: Device) -> Iterator[Ceiling]:
    method = datasheet(device=device.name)
    for name, below_gib, gb_s, rates in _SHEETS:
        is_named = re.search(rf"(^|[ -]){re.escape(name)}{_SUFFIX}", device.name)
        if is_named and device.memory_bytes < below_gib * GiB:
            yield _ceiling(MEMORY, "", gb_s * 1e9, DATASHEET, method)
            for kind, rate in zip(_SHEET_KINDS, rates, strict=True):
                units = VECTOR if kind == "fp32" else MATRIX
                if rate:
                    yield _ceiling(units, kind, rate * 1e12, DATASHEET, method)
            return


def _derived_of_memory(device: Device) -> Iterator[Ceiling]:
    if device.memory_mhz and device.bus_bits:
        rate = device.memory_mhz * _MEGA * _DATA_RATE * device.bus_bits / 8
        method = memory_clock(mhz=device.memory_mhz, transfers=_DATA_RATE, bits=device.bus_bits)
        yield _ceiling(MEMORY, "", rate, DERIVED, method)


def _derived_of_sms(device: Device) -> Iterator[Ceiling]:
    """From what an SM does in a clock."""
    if not (device.capability and device.sm_mhz and device.sms):
        return
    major, minor = map(int, device.capability.split("."))
    capability = (major, minor)
    is_geforce = "GeForce" in device.name
    tensor = _TENSOR.get(capability, _TENSOR_GEFORCE if is_geforce else 1024)
    lanes = 128 if capability >= (8, 6) else 64  # of fp32, in one SM
    per_clock: dict[tuple[str, str], float] = {
        (CACHE, ""): 64,  # bytes that one SM can ask of the L2
        (VECTOR, "fp32"): 2 * lanes,
        (VECTOR, "fp64"): 2 * _LANES_FP64.get(capability, 2),
    }
    for kind, (since, share) in TENSOR_DTYPES.items():
        if capability >= since:
            # GeForce cards accumulate in fp32 at half the rate, and in integers at the whole one.
            whole = 2 if kind == "int8" and tensor == _TENSOR_GEFORCE else 1
            per_clock[MATRIX, kind] = share * tensor * whole
    for (roof, kind), amount in per_clock.items():
        unit = unit_of(roof).partition("/")[0]
        method = sm_clock(sms=device.sms, per_clock=amount, unit=unit, mhz=device.sm_mhz)
        rate = device.sms * amount * device.sm_mhz * _MEGA
        yield _ceiling(roof, kind, rate, DERIVED, method)


def _ceiling(roof: str, kind: str, value: float, source: str, method: Finding) -> Ceiling:
    return Ceiling(
        roof=roof,
        kind=kind,
        unit=unit_of(roof),
        best=value,
        median=value,
        source=source,
        method=method,
    )


def unit_of(roof: str) -> str:
    """Memory, caches and links move bytes; matrix and vector units do FLOPs."""
    return "FLOP/s" if roof in (MATRIX, VECTOR) else "B/s"
