"""One step of a report, as rules ask about it: shares of its time, its kernels, the roofs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpulab.core.payloads import BUSY, KernelCode
from gpulab.report.report import RunReport, VariantReport

if TYPE_CHECKING:
    from gpulab.features.goodput.events import LineTime, Operation, WindowFacts
    from gpulab.features.goodput.result import GoodputReport
    from gpulab.features.roofline.events import Ceiling

PERCENT = 100.0
AT_ROOF = 0.8
"""Of a roof: nearer is not worth the work."""
_HOST_TO_DEVICE = re.compile(r"Memcpy HtoD \((\w+)")
_DEVICE_TO_HOST = re.compile(r"Memcpy DtoH \(Device -> (\w+)")
_COMPILED = re.compile(r"^triton_(poi|per|red|tem|mm)\w*_fused|CompiledFxGraph|Torch-Compiled")
_PRODUCT = re.compile(
    r"aten::(mm|bmm|addmm|baddbmm|addbmm|mv|linear|matmul|_?convolution|conv\w*|_scaled_mm)$"
    r"|gemm|nvjet|_mma|wgmma|cudnn\w*conv|implicit_convolve|winograd",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Step:
    report: RunReport
    variant: VariantReport

    @property
    def on_gpu(self) -> bool:
        return self.report.on_gpu

    @property
    def compiled_kernels(self) -> list[KernelCode]:
        """As the compiler made them."""
        return getattr(self.variant, "kernels", [])

    @property
    def ranks(self) -> Any:
        """Those of a program that is followed: who is late, as the report has it."""
        program = self.report.get("program")
        return program.ranks if program else None

    @property
    def step_s(self) -> float | None:
        """The step that was recorded, as it is without the profiler; else the measured one."""
        goodput: GoodputReport | None = self.variant.goodput
        if goodput is not None and goodput.step_s:
            return goodput.step_s
        return self.variant.time_s.value if self.variant.time_s else None

    @property
    def recorded(self) -> bool:
        """Return whether it is known where the time of the step goes."""
        goodput = self.variant.goodput
        return goodput is not None and bool(goodput.partition)

    @property
    def facts(self) -> WindowFacts | None:
        return self.variant.goodput.facts if self.variant.goodput else None

    @property
    def compiled(self) -> bool:
        """Return whether code of torch's compiler runs in it."""
        if self.facts is not None and self.facts.compiled_regions:
            return True
        return any(_COMPILED.search(row.name) for row in self.operations)

    @property
    def phases(self) -> dict[str, float]:
        return self.variant.goodput.phases if self.variant.goodput else {}

    def share(self, *parts: str) -> float:
        """Return the share of the step that these parts take, as recorded; 0 where nothing was."""
        goodput: GoodputReport | None = self.variant.goodput
        partition = goodput.partition if goodput else {}
        return sum(partition.get(part, 0.0) for part in parts)

    @property
    def idle(self) -> float:
        """The share of the step in which a device does nothing."""
        return max(0.0, 1 - self.share(*BUSY)) if self.recorded else 0.0

    @property
    def uncertainty(self) -> float:
        goodput = self.variant.goodput
        return (goodput.uncertainty or 0.0) if goodput else 0.0

    @property
    def operations(self) -> list[Operation]:
        return self.variant.goodput.operations if self.variant.goodput else []

    @property
    def faults(self) -> float | None:
        """Page faults of a step; None where nobody counts them."""
        per_block = self.variant.faults_per_block
        steps = self.variant.steps_per_block
        return per_block / steps if per_block is not None and steps else None

    @property
    def lines(self) -> list[LineTime]:
        return self.variant.goodput.lines if self.variant.goodput else []

    def share_of_rows(self, rows: Iterable[Operation]) -> float:
        return sum(row.share for row in rows)

    @property
    def products(self) -> list[Operation]:
        """Rows that multiply matrices, or convolve: a device's kernels, else operations."""
        rows = [row for row in self.operations if row.on_device == self._has_kernels]
        return [row for row in rows if _PRODUCT.search(row.name)]

    @property
    def _has_kernels(self) -> bool:
        return any(row.on_device for row in self.operations)

    @property
    def kernels(self) -> list[Operation]:
        return [row for row in self.operations if row.on_device and not row.name.startswith("Mem")]

    def copied(self, memory: str) -> tuple[float, float]:
        """Shares of the step in which copies to the device, and from it, go on with host memory of
        that kind ("Pageable" or "Pinned").
        """
        to_device = (row.share for row in self.operations if _is(row, _HOST_TO_DEVICE, memory))
        to_host = (row.share for row in self.operations if _is(row, _DEVICE_TO_HOST, memory))
        return sum(to_device), sum(to_host)

    @cached_property
    def counters(self) -> dict[str, float]:
        """Means of the solo run, by field; shares as fractions."""
        solo = self.variant.solo_run
        means = solo.means if solo else {}
        percents = ("sm", "occupancy", "tensor", "dram", "fp64", "fp32", "fp16", "busy")
        return {
            name: value / PERCENT if name in percents else value for name, value in means.items()
        }

    @property
    def bound(self) -> str:
        """Return what limits it, empty where unknown."""
        return str(self.variant.cause.bound) if self.variant.cause else ""

    @property
    def cause(self) -> str:
        """The code of the evidence for what limits it."""
        return self.variant.cause.reason.code if self.variant.cause else ""

    def cause_value(self, name: str) -> float | None:
        value = self.variant.cause.reason.values.get(name) if self.variant.cause else None
        return value if isinstance(value, float) else None

    @property
    def fraction(self) -> float | None:
        """Return the share of its roof, by declared work."""
        return self.variant.roofline.fraction.value if self.variant.roofline else None

    @property
    def at_roof(self) -> bool:
        """Return whether it runs at its roof already."""
        return self.fraction is not None and self.fraction >= AT_ROOF

    def ceiling(self, roof: str, kind: str) -> Ceiling | None:
        measured = self.report.ceilings.ceilings if self.report.ceilings else ()
        return next((each for each in measured if each.key == (roof, kind)), None)


def _is(row: Operation, pattern: re.Pattern[str], memory: str) -> bool:
    found = pattern.match(row.name)
    return found is not None and found[1] == memory
