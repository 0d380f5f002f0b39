"""A roofline like an H200's, that tests draw."""

import devices

from gpulab.core.estimate import Estimate
from gpulab.features.roofline.bound import Roofline, StepFacts, limit_of
from gpulab.features.roofline.ceilings import RoofSet, nominal_ceilings
from gpulab.features.roofline.events import Ceiling


def ceiling(roof, kind, best, *, unit="FLOP/s", source="measured"):
    ends = {"median_low": 0.98 * best, "median_high": best}
    return Ceiling(
        roof=roof, kind=kind, unit=unit, best=best, median=best, spread=0.01, source=source, **ends
    )


H200 = (
    ceiling("device memory", "triad", 4.40e12, unit="B/s"),
    ceiling("cache", "read", 8.59e12, unit="B/s"),
    ceiling("matrix", "fp16", 769e12),
    ceiling("matrix", "bf16", 784e12),
    ceiling("matrix", "fp32", 51.2e12),
    ceiling("vector", "fp32", 63.5e12),
    ceiling("host to device", "pinned", 55e9, unit="B/s"),
    ceiling("launch", "enqueue", 2.1e-6, unit="s"),
    *nominal_ceilings(devices.H200),
)


def point(ceilings, name, seconds, **facts):
    facts_of_step = StepFacts(
        time_s=Estimate(value=seconds, low=seconds * 0.99, high=seconds * 1.01), **facts
    )
    return limit_of(name, facts_of_step, RoofSet(ceilings))


def h200():
    """A ladder of attention, two variants at one place, one that moves more than it declares, one
    that only copies.
    """
    flops, moved = 4 * 16 * 4096 * 4096 * 64, 16 * 4096 * 4096 * 2
    small = 4 * 16 * 4096 * 64 * 2
    return Roofline(
        H200,
        (
            point(H200, "naive", 1.8e-3, dtype="fp16", flops=flops, bytes=4 * moved),
            point(H200, "masked_in_place", 9.4e-4, dtype="fp16", flops=flops, bytes=3 * moved),
            point(
                H200,
                "flash",
                1.31e-4,
                dtype="fp16",
                flops=flops,
                bytes=small,
                dram_bytes=4.0 * small,
            ),
            point(
                H200, "flash_with_a_very_long_name", 1.35e-4, dtype="bf16", flops=flops, bytes=small
            ),
            point(H200, "fp32_math", 2.9e-3, dtype="fp32", flops=flops, bytes=8 * moved),
            point(H200, "copy_only", 7.1e-4, dtype="fp16", bytes=5 * moved),
            point(H200, "one_row", 9.0e-6, dtype="fp16", flops=2048, bytes=8192, launches=3),
            point(
                H200, "softmax", 3.2e-4, dtype="fp16", flops=5 * 16 * 4096 * 4096, bytes=2 * moved
            ),
        ),
        ((0, 1), (1, 2)),
    )
