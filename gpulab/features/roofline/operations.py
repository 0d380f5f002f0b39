"""Where the operations of a profiled step lie below the roofs."""

from __future__ import annotations

from msgspec import structs

from gpulab.core.payloads import REST
from gpulab.features.goodput.analysis import summed
from gpulab.features.goodput.events import Operation, Profiled
from gpulab.features.roofline.bound import OperationPoint, bound_of, point_of
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.evidence import StepFacts

_MOST = 60
_FLOATING = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8")


def operation_points(
    profiled: Profiled, roofs: RoofSet, cache_bytes: int, *, cache_seen: bool
) -> list[OperationPoint]:
    """Of the operations with a formula those that take longest, whoever calls them. Their times
    are as they were recorded: a host's hold what the profiler takes of them.
    """
    steps = profiled.steps
    on_device = any(row.on_device for row in profiled.operations)
    host = [row for row in profiled.operations if not row.on_device and row.name != REST]
    rows = summed(host, lambda row: (row.name, row.shapes, row.dtype))
    timed = [(seconds_of(row), row) for row in rows if row.calls]
    points = []
    for seconds, row in sorted(timed, key=lambda pair: -pair[0]):
        if not seconds or not (row.flops or row.bytes):
            continue
        facts = StepFacts(
            seconds=seconds / row.calls,
            bytes=_of_a_call(row.bytes, row.calls),
            flops=_of_a_call(row.flops, row.calls) if row.dtype in _FLOATING else None,
            dtype=row.dtype if row.dtype in _FLOATING else None,
            launches=None if on_device else 1,
            on_gpu=on_device,
            cache_bytes=cache_bytes,
            cache_seen=cache_seen,
        )
        point = point_of(row.name, facts, bound_of(facts, roofs))
        if point is not None:
            points.append(
                OperationPoint(
                    **structs.asdict(point),
                    shapes=row.shapes,
                    inputs=row.dtype,
                    calls=row.calls / steps,
                    seconds=seconds / steps,
                    flops=None if row.flops is None else row.flops / steps,
                    bytes=None if row.bytes is None else row.bytes / steps,
                )
            )
        if len(points) == _MOST:
            break
    return points


def seconds_of(row: Operation) -> float:
    """What its work takes: on a device that of its kernels, else its own with what it calls."""
    if row.device_total_s is not None:
        return row.device_total_s
    return row.total_s or 0.0


def _of_a_call(amount: float | None, calls: float) -> int | None:
    return None if amount is None else round(amount / calls)


def short_operation(name: str) -> str:
    """Beside a plot: mm of aten::mm."""
    return name.removeprefix("aten::").strip("_").removeprefix("scaled_dot_product_")
