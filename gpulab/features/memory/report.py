"""What a variant needs of the device's memory, as a part of the report."""

from __future__ import annotations

from gpulab.core.jobs import Measure
from gpulab.core.statuses import ExitCode, Shows
from gpulab.features.memory import result
from gpulab.features.memory.events import MemoryUsed
from gpulab.features.memory.result import MemoryReport
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.state import VariantState

CLOSE = 0.05
"""A time per item within this of the best one is as good, where what it costs is memory or
latency.
"""


def _add_to_variant(_: Draft, variant: VariantState, report: VariantReport) -> VariantReport:
    used = variant.last(MemoryUsed)
    if used is None:
        return report
    memory = MemoryReport(held_bytes=used.held, peak_bytes=used.peak, reserved_bytes=used.reserved)
    return report.with_parts(memory=memory)


def _add_to_run(draft: Draft, report: RunReport) -> RunReport:
    """With the smallest variant whose time per item comes close to the best."""
    job = draft.state.job
    if not isinstance(job, Measure) or not job.increasing_memory:
        return report
    if report.exit_code != ExitCode.MEASURED:
        return report
    times = {}
    for variant in report.variants:
        time = variant.time_per_item
        if time and time.low:
            times[variant.name] = time.value
    best = min(times.values(), default=0.0)
    sweet_spot = next((name for name, time in times.items() if time <= best * (1 + CLOSE)), None)
    return report.with_parts(sweet_spot=sweet_spot)


FEATURE = Feature(
    "memory",
    variant_part=result.VariantPart,
    run_part=result.RunPart,
    add_to_variant=_add_to_variant,
    add_to_run=_add_to_run,
    views=[View("memory.view:memory", Section.RESOURCES, lesson=Shows.MEMORY, flag="memory")],
)
