"""Ceilings from timings, what a GPU's datasheet says, and which of all the known ones limits a
piece of work.

Dense rates with fp32 accumulation, from NVIDIA's datasheets and architecture whitepapers of each
product.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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

    Memory, caches and links move bytes; matrix and vector units do FLOPs.
    """
    values = sorted(amount / time_s for time_s in times_s) if amount else sorted(times_s)
    middle = median(values)
    interval = median_interval(values)
    low, _, high = quantiles(values, n=4) if len(values) > 1 else (middle, middle, middle)
    unit = "s"
    if amount:
        unit = "FLOP/s" if roof in (MATRIX, VECTOR) else "B/s"
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
    """The roofs of work: measured ceilings that are steady, then derived, then the datasheet's."""

    ceilings: Sequence[Ceiling]

    def best(self, roof: str, kinds: Iterable[str] | None = None) -> Ceiling | None:
        """The highest of a roof by its best source; None where nothing is known of it.

        What was measured between the blocks of the run itself comes before what was measured at
        another time.
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
        """The slowest way of doing nothing but move bytes through device memory, as a part of the
        memory roof.

        Both as they were measured one after the other: the roof that is measured beside a run
        drifts with the machine.
        """
        roof = self.best(MEMORY)
        streams = [
            ceiling
            for ceiling in self.ceilings
            if ceiling.roof == MEMORY
            and ceiling.source == MEASURED
            and ceiling.steady
            and not ceiling.processes
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
        # The roof that was measured in the run itself stands for the higher of the two at another
        # time.
        return max(known, key=lambda ceiling: (ceiling.processes > 0, ceiling.median), default=None)

    def launch_s(self) -> Ceiling | None:
        """Return what starting one operation costs the host."""
        return self._cost(LAUNCH, "enqueue")

    def fault_s(self) -> Ceiling | None:
        """Return what one page that a process touches for the first time costs it."""
        return self._cost(PAGE_FAULT, "")

    def _cost(self, roof: str, kind: str) -> Ceiling | None:
        return next((ceiling for ceiling in self.ceilings if ceiling.key == (roof, kind)), None)

    def unsteady(self) -> list[Ceiling]:
        """Measured, too unsteady to be used, and not measured between the run's blocks instead."""
        beside = {ceiling.key for ceiling in self.ceilings if ceiling.processes}
        return [
            ceiling
            for ceiling in self.ceilings
            if not ceiling.steady and ceiling.roof not in COSTS and ceiling.key not in beside
        ]


_TERA = 1e12
_MEGA = 1e6
_DATA_RATE = 2
"""Transfers per memory clock, as the driver names that clock."""


@dataclass(frozen=True)
class _Sheet:
    """TFLOP/s by dtype, and GB/s; None where the device has no units for it."""

    fp32: float
    tf32: float | None
    fp16: float
    fp8: float | None
    gb_s: float
    bf16: bool = True


# By the name that the driver gives, with the memory in GiB below which it holds where two share a
# name.
_SHEETS: tuple[tuple[str, float | None, _Sheet], ...] = (
    (r"V100-SXM2", None, _Sheet(15.7, None, 125, None, 900, bf16=False)),
    (r"T4", None, _Sheet(8.1, None, 65, None, 320, bf16=False)),
    (r"A100-SXM4-40GB", None, _Sheet(19.5, 156, 312, None, 1555)),
    (r"A100-SXM4-80GB", None, _Sheet(19.5, 156, 312, None, 2039)),
    (r"L4", None, _Sheet(30.3, 60, 121, 242, 300)),
    (r"L40S", None, _Sheet(91.6, 183, 362, 733, 864)),
    (r"RTX 3090", None, _Sheet(35.6, 35.6, 71, None, 936)),
    (r"RTX 4090", None, _Sheet(82.6, 82.6, 165, 330, 1008)),
    (r"RTX 5090", None, _Sheet(104.8, 104.8, 209.5, 419, 1792)),
    (r"H100 PCIe", None, _Sheet(51, 378, 756, 1513, 2000)),
    (r"H100 80GB HBM3", None, _Sheet(67, 494, 989, 1979, 3350)),
    (r"H200", None, _Sheet(67, 494, 989, 1979, 4800)),
    (r"GH200", 100, _Sheet(67, 494, 989, 1979, 4000)),
    (r"GH200", None, _Sheet(67, 494, 989, 1979, 4900)),
    (r"B200", None, _Sheet(75, 1100, 2250, 4500, 8000)),
)
_SUFFIX = r"(-\d+GB)?( \d+GB?( HBM3e?)?)?$"  # a Ti, a D or a Laptop GPU is another product
_LANES = 128
_LANES_BEFORE = 64
_LANES_SINCE = (8, 6)
"""fp32 FMA lanes of one SM, and before which compute capability they were fewer."""
_LANES_FP64 = {(7, 0): 32, (8, 0): 32, (9, 0): 64, (10, 0): 64}
_FEW_FP64 = 2
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
_RATE_TO_FP16 = {
    "tf32": ((8, 0), 0.5),
    "bf16": ((8, 0), 1),
    "fp8": ((8, 9), 2),
    "int8": ((7, 5), 2),
}
"""Since which capability the tensor cores take a dtype, and its rate over fp16's."""
_TENSOR_CARDS = {"GeForce": 512, "": 1024}
_L2_BYTES_PER_CLOCK = 64
"""What one SM can ask of the L2 cache."""


def nominal_ceilings(device: Device) -> list[Ceiling]:
    """A GPU's datasheet ceilings, where it is listed, and those derived from clocks and widths."""
    return [*_sheet_ceilings(device), *_derived(device)] if device.on_gpu else []


def _sheet_ceilings(device: Device) -> list[Ceiling]:
    sheet = next(
        (
            sheet
            for name, below_gib, sheet in _SHEETS
            if re.search(rf"(^|[ -]){re.escape(name)}{_SUFFIX}", device.name)
            and (below_gib is None or device.memory_bytes < below_gib * GiB)
        ),
        None,
    )
    if sheet is None:
        return []
    rates = {
        "tf32": sheet.tf32,
        "fp16": sheet.fp16,
        "bf16": sheet.fp16 if sheet.bf16 else None,
        "fp8": sheet.fp8,
    }
    method = datasheet(device=device.name)
    return [
        _ceiling(MEMORY, "", "B/s", sheet.gb_s * 1e9, DATASHEET, method),
        _ceiling(VECTOR, "fp32", "FLOP/s", sheet.fp32 * _TERA, DATASHEET, method),
        *(
            _ceiling(MATRIX, kind, "FLOP/s", rate * _TERA, DATASHEET, method)
            for kind, rate in rates.items()
            if rate
        ),
    ]


def _derived(device: Device) -> list[Ceiling]:
    ceilings = []
    if device.memory_mhz and device.bus_bits:
        rate = device.memory_mhz * _MEGA * _DATA_RATE * device.bus_bits / 8
        method = memory_clock(mhz=device.memory_mhz, transfers=_DATA_RATE, bits=device.bus_bits)
        ceilings.append(_ceiling(MEMORY, "", "B/s", rate, DERIVED, method))
    if device.capability and device.sm_mhz and device.sms:
        ceilings += _derived_from_sms(device, tuple(map(int, device.capability.split("."))))
    return ceilings


def _derived_from_sms(device: Device, capability: tuple[int, ...]) -> list[Ceiling]:
    def per_clock(roof: str, kind: str, unit: str, amount: float) -> Ceiling:
        amount_unit = unit.partition("/")[0]
        method = sm_clock(sms=device.sms, per_clock=amount, unit=amount_unit, mhz=device.sm_mhz)
        return _ceiling(
            roof, kind, unit, device.sms * amount * device.sm_mhz * _MEGA, DERIVED, method
        )

    lanes = _LANES if capability >= _LANES_SINCE else _LANES_BEFORE
    lanes_fp64 = _LANES_FP64.get((capability[0], capability[1]), _FEW_FP64)
    cards = next(flops for card, flops in _TENSOR_CARDS.items() if card in device.name)
    tensor = _TENSOR.get((capability[0], capability[1]), cards)
    # GeForce cards accumulate in fp32 at half the rate, and in integers at the whole one.
    halved = tensor == _TENSOR_CARDS["GeForce"]
    ceilings = [
        per_clock(CACHE, "", "B/s", _L2_BYTES_PER_CLOCK),
        per_clock(VECTOR, "fp32", "FLOP/s", 2 * lanes),
        per_clock(VECTOR, "fp64", "FLOP/s", 2 * lanes_fp64),
        per_clock(MATRIX, "fp16", "FLOP/s", tensor),
    ]
    return ceilings + [
        per_clock(MATRIX, kind, "FLOP/s", share * tensor * (2 if halved and kind == "int8" else 1))
        for kind, (since, share) in _RATE_TO_FP16.items()
        if capability >= since
    ]


def _ceiling(
    roof: str, kind: str, unit: str, value: float, source: str, method: Finding
) -> Ceiling:
    return Ceiling(
        roof=roof, kind=kind, unit=unit, best=value, median=value, source=source, method=method
    )
