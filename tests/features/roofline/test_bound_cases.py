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


def on_h100(row, *, capped=False, phase=None, **more):
    """A step of an H100: what it declares, and the shares that its solo run counted."""
    known = dict(zip(COLUMNS, row, strict=True)) | {"phase": phase}
    known = {name: value for name, value in known.items() if value is not None}
    counters = {name: known.pop(name) for name in COUNTED if name in known}
    others = {name: known.pop(name) for name in BESIDE if name in known}
    return StepFacts(
        Estimate(value=known.pop("time_s")),
        on_gpu=True,
        cache_bytes=52428800 // 2,
        counters={"power_limit_w": 700.0, **counters},
        at_power_cap=capped,
        others=others,
        **known,
        **more,
    )


COLUMNS = (
    "time_s",
    "bytes",
    "flops",
    "launches",
    "sm",
    "occupancy",
    "tensor",
    "fp32",
    "dram",
    "power_w",
    "dram_bytes",
    "waiting",
    "launching",
)
_ = None
RECORDED = {
    "attention in fp32 at the power limit": (
        "power",
        on_h100(
            (0.00401, 268435456, 140123308032, 1, 1, 0.185, 0.328, 0.102, 0.04, 699, 5.05e08, 0, _),
            capped=True,
        ),
    ),
    "a power-capped product": (
        "compute",
        on_h100(
            (0.00284, 805306368, 1099511627776, _, 1, 0.2, 1, _, 0.3, 698, 2.75e09, 0, _),
            capped=True,
            dtype="tf32",
        ),
    ),
    "a layer norm, power-capped as well": (
        "memory",
        on_h100(
            (0.000417, 1073741824, 939524096, 1, 1, 0.726, _, 0.209, 0.763, 692, 1.07e09, 0, _),
            capped=True,
        ),
    ),
    "an optimizer that goes through memory three times": (
        "memory",
        on_h100((0.002, 1410662400, _, 203, 0.803, 0.398, _, _, 0.691, 429, 4.02e09, 0.235, _)),
    ),
    "an optimizer that starts a thousand operations": (
        "launch",
        on_h100(
            (0.00696, 1410662400, _, 962, 0.341, 0.124, _, _, 0.223, 178, 1.75e09, 0.636, 0.773)
        ),
    ),
    "a copy at 109 % of the memory roof": (
        "cache",
        on_h100((3.93e-06, 13107200, _, 1, 0.486, 0.281, _, _, _, 238, 166, 0.21, 0.19)),
    ),
    "a tiny product": (
        "latency",
        on_h100((8.01e-06, 786432, 33554432, 1, 0.442, 0.024, _, 0.064, _, 170, 475, 0.222, 0.21)),
    ),
    "a transposing copy": (
        "latency",
        on_h100(
            (
                0.00265,
                1073807360,
                536870912,
                2,
                0.99,
                0.906,
                _,
                0.004,
                0.373,
                561,
                3.22e09,
                0.038,
                _,
            )
        ),
    ),
    "batches that wait for their data": (
        "latency",
        on_h100((0.624, _, 549755813888, 197, 0.025, 0.005, _, _, _, 137, _, _, _), phase=0.96),
    ),
    "copies from the host beside products": (
        "link",
        on_h100(
            (0.0137, 536870912, 549755813888, _, 0.864, _, _, 0.656, _, 542, _, 0.014, _),
            roof="host to device",
        ),
    ),
}


@pytest.mark.parametrize("case", RECORDED)
def test_a_recorded_step_is_named_rightly(case):
    kind, facts = RECORDED[case]
    cause = limit_of(case, facts, H100)
    assert cause.bound == kind, cause.reason


def test_fewer_larger_operations_are_advised_only_where_starting_them_takes_the_time():
    for case, (kind, facts) in RECORDED.items():
        codes = {"launches_take_the_time", "device_waits_for_launches"}
        assert (limit_of(case, facts, H100).reason.code in codes) == (kind == "launch")
