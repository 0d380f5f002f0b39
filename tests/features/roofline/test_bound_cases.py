"""Steps of a GPU whose cause is known, as an H100 was recorded, are named rightly.

The cause of each recorded step is what made it faster there, or what its source says that it does.
"""

import pytest

from gpulab.core.estimate import Estimate
from gpulab.features.roofline.bound import StepFacts, limit_of
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.events import Ceiling


def ceiling(roof, kind, best, median=None):
    return Ceiling(roof=roof, kind=kind, unit="", best=best, median=median or best)


H100 = RoofSet(
    [
        *(
            ceiling("device memory", kind, best)
            for kind, best in (("copy", 3.02e12), ("read", 3.07e12))
        ),
        ceiling("cache", "read", 7.41e12),
        ceiling("matrix", "fp32", 5.17e13),
        ceiling("matrix", "tf32", 4.12e14, 3.66e14),
        ceiling("matrix", "fp16", 7.6e14, 6.68e14),
        ceiling("vector", "fp32", 6.3e13),
        ceiling("launch", "enqueue", 5.59e-6),
        ceiling("launch", "spacing", 2.1e-6),
        ceiling("host to device", "pinned 256 MiB", 5.5e10),
    ]
)


COUNTED = ("sm", "occupancy", "tensor", "fp32", "dram", "power_w")
BESIDE = ("launching", "waiting", "phase")


def on_h100(time_s, *, capped=False, **known):
    """A step of an H100, with the shares that its solo run counted."""
    counters = {name: known.pop(name) for name in COUNTED if name in known}
    others = {name: known.pop(name) for name in BESIDE if name in known}
    return StepFacts(
        Estimate(value=time_s),
        on_gpu=True,
        cache_bytes=52428800 // 2,
        counters={"power_limit_w": 700.0, **counters},
        at_power_cap=capped,
        others=others,
        **known,
    )


RECORDED = {
    "attention in fp32 at the power limit": (
        on_h100(
            0.00401,
            sm=1.0,
            occupancy=0.185,
            tensor=0.328,
            fp32=0.102,
            dram=0.04,
            power_w=699,
            capped=True,
            bytes=268435456,
            flops=140123308032,
            launches=1,
            waiting=0.0,
            dram_bytes=505000000.0,
        ),
        "power",
    ),
    "a power-capped product": (
        on_h100(
            0.00284,
            sm=1.0,
            occupancy=0.2,
            tensor=1.0,
            dram=0.3,
            power_w=698.0,
            capped=True,
            bytes=805306368,
            flops=1099511627776,
            dtype="tf32",
            waiting=0.0,
            dram_bytes=2750000000.0,
        ),
        "compute",
    ),
    "a layer norm, power-capped as well": (
        on_h100(
            0.000417,
            sm=1.0,
            occupancy=0.726,
            fp32=0.209,
            dram=0.763,
            power_w=692.0,
            capped=True,
            bytes=1073741824,
            flops=939524096,
            launches=1,
            waiting=0.0,
            dram_bytes=1070000000.0,
        ),
        "memory",
    ),
    "an optimizer that goes through memory three times": (
        on_h100(
            0.002,
            sm=0.803,
            occupancy=0.398,
            dram=0.691,
            power_w=429.0,
            bytes=1410662400,
            launches=203,
            waiting=0.235,
            dram_bytes=4020000000.0,
        ),
        "memory",
    ),
    "an optimizer that starts a thousand operations": (
        on_h100(
            0.00696,
            sm=0.341,
            occupancy=0.124,
            dram=0.223,
            power_w=178.0,
            bytes=1410662400,
            launches=962,
            waiting=0.636,
            launching=0.773,
            dram_bytes=1750000000.0,
        ),
        "launch",
    ),
    "a copy at 109 % of the memory roof": (
        on_h100(
            3.93e-06,
            sm=0.486,
            occupancy=0.281,
            power_w=238.0,
            bytes=13107200,
            launches=1,
            waiting=0.21,
            launching=0.19,
            dram_bytes=166.0,
        ),
        "cache",
    ),
    "a tiny product": (
        on_h100(
            8.01e-06,
            sm=0.442,
            occupancy=0.024,
            fp32=0.064,
            power_w=170.0,
            bytes=786432,
            flops=33554432,
            launches=1,
            waiting=0.222,
            launching=0.21,
            dram_bytes=475.0,
        ),
        "latency",
    ),
    "a transposing copy": (
        on_h100(
            0.00265,
            sm=0.99,
            occupancy=0.906,
            fp32=0.004,
            dram=0.373,
            power_w=561.0,
            bytes=1073807360,
            flops=536870912,
            launches=2,
            waiting=0.038,
            dram_bytes=3220000000.0,
        ),
        "latency",
    ),
    "batches that wait for their data": (
        on_h100(
            0.624,
            sm=0.025,
            occupancy=0.005,
            power_w=137.0,
            flops=549755813888,
            launches=197,
            phase=0.96,
        ),
        "latency",
    ),
    "copies from the host beside products": (
        on_h100(
            0.0137,
            sm=0.864,
            fp32=0.656,
            power_w=542.0,
            bytes=536870912,
            flops=549755813888,
            roof="host to device",
            waiting=0.014,
        ),
        "link",
    ),
}


@pytest.mark.parametrize("case", RECORDED)
def test_a_recorded_step_is_named_rightly(case):
    facts, kind = RECORDED[case]
    cause = limit_of(case, facts, H100)
    assert cause.bound == kind, cause.reason


def test_fewer_larger_operations_are_advised_only_where_starting_them_takes_the_time():
    for case, (facts, kind) in RECORDED.items():
        codes = {"launches_take_the_time", "device_waits_for_launches"}
        assert (limit_of(case, facts, H100).reason.code in codes) == (kind == "launch")
