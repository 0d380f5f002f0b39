"""What limits a step, in words: every judgement of `bound_of` says its evidence."""

from dataclasses import replace

import pytest

from gpulab.features.roofline.bound import bound_of
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.events import Ceiling
from gpulab.features.roofline.evidence import DeviceCounters, StepFacts
from gpulab.report.sentences import sentence

GIGA, TERA = 10**9, 10**12


def ceiling(roof, kind, best, median=None):
    return Ceiling(roof=roof, kind=kind, unit="", best=best, median=median or best)


MEMORY = [
    ceiling("device memory", "update", 100 * GIGA),
    ceiling("device memory", "copy", 50 * GIGA),
]
ROOFS = RoofSet(
    [
        *MEMORY,
        ceiling("cache", "read", 300 * GIGA),
        ceiling("matrix", "fp32", 1 * TERA),
        ceiling("launch", "enqueue", 2e-6),
        ceiling("page fault", "", 1e-6),
        ceiling("host to device", "pinned", 50 * GIGA),
    ]
)
STREAM = StepFacts(seconds=1.0, bytes=80 * GIGA, flops=10 * GIGA, cache_bytes=2**25)
IN_CACHE = StepFacts(seconds=2.4e-4, bytes=2**24, cache_bytes=2**25)
TINY = StepFacts(seconds=1e-5, bytes=1000, flops=100)
COPY = StepFacts(seconds=1.0, bytes=45 * GIGA, roof="host to device")


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (STREAM, "memory 80%, fp32 arithmetic 1%: fewer bytes make it faster"),
        (replace(STREAM, flops=None), "memory 80%: fewer bytes make it faster"),
        (
            replace(STREAM, bytes=46 * GIGA),
            "as fast as a copy moves its bytes: fewer bytes make it faster",
        ),
        (
            replace(STREAM, bytes=130 * GIGA, dram_bytes=110e9),
            "above the measured roof",
        ),
        (
            replace(STREAM, flops=900 * GIGA, bytes=GIGA),
            "fp32 arithmetic 90%: fewer or cheaper operations make it",
        ),
        (replace(STREAM, flops=1200 * GIGA), "fp32 arithmetic 120%: above the measured roof"),
        (
            replace(STREAM, bytes=250 * GIGA),
            "2.5x device-memory bandwidth: served from cache, or it moves fewer bytes than "
            "declared, 83% of the last-level cache's roof",
        ),
        (
            replace(IN_CACHE, seconds=1e-4),
            "1.7x device-memory bandwidth: served from cache, 56% of the last",
        ),
        (IN_CACHE, "its bytes fit into the cache, and so may stay there"),
        (replace(IN_CACHE, hot=False), "memory 70%: fewer bytes make it faster"),
        (
            replace(STREAM, dram_bytes=1e9),
            "the device counted only 1% of its bytes in memory: served from cache, 27% of the last",
        ),
        (
            replace(IN_CACHE, seconds=2e-5),
            "280% of the last-level cache's roof, so a nearer cache serves them",
        ),
        (
            replace(STREAM, dtype="fp16"),
            "memory 80%, fp16 arithmetic: no ceiling known here: fewer bytes make it",
        ),
        (
            replace(STREAM, bytes=GIGA, dtype="fp16"),
            "not every ceiling is known (memory 1%, fp16 arithmetic: no ceiling known here)",
        ),
        (
            replace(TINY, launches=4),
            "starting its 4 operations takes 80% of its time, 0% of the nearest roof (memory 0%",
        ),
        (
            replace(TINY, seconds=4e-5, launches=3),
            "cause not determined (launches 15%)",
        ),
        (
            replace(TINY, seconds=4e-5, flops=int(14e6), launches=3),
            "35% of the nearest roof (memory 0%, fp32 arithmetic 35%)",
        ),
        (
            replace(STREAM, bytes=None, waiting_phase=("data", 0.57)),
            "its data phase takes 57% of the time, 1% of the nearest roof",
        ),
        (
            replace(STREAM, bytes=None, waiting_phase=("data", 0.1)),
            "; cause not determined",
        ),
        (
            replace(TINY, waiting=0.3, on_gpu=True, launches=4),
            "the device waits for the host 30% of the time, 0% of the nearest roof",
        ),
        (
            replace(TINY, seconds=0.1, launches=1, waiting=0.9, on_gpu=True),
            "the device waits for the host 90% of the time; starting 1 operation alone takes 0%",
        ),
        (
            replace(
                TINY,
                on_gpu=True,
                counters=DeviceCounters(sm=0.97, occupancy=0.4, tensor=0.01, fp32=0.09),
            ),
            "cause not determined (SMs busy 97%, occupancy 40%, FP32 9%)",
        ),
        (
            replace(
                STREAM, on_gpu=True, counters=DeviceCounters(power=699.0, limit=700.0, capped=True)
            ),
            "memory 80%, fp32 arithmetic 1%, at the power limit (699 of 700 W): fewer bytes make "
            "it faster",
        ),
        (replace(TINY, faults=6.0), "6 page faults a step take 60% of its time"),
        (COPY, "90% of the host to device link: fewer bytes make it faster"),
        (
            replace(COPY, bytes=10 * GIGA),
            "only 20% of the host to device link",
        ),
        (
            replace(COPY, bytes=70 * GIGA),
            "140% of the host to device link: above the measured roof",
        ),
        (
            replace(COPY, bytes=10 * GIGA, flops=int(9e11)),
            "20% of the host to device link, fp32 arithmetic 90%: fewer or cheaper operations "
            "make it faster",
        ),
    ],
)
def test_the_evidence_is_in_the_sentence(facts, text):
    assert text in sentence(bound_of(facts, ROOFS).reason)


def test_an_unsteady_ceiling_is_told_from_one_that_is_not_known():
    disturbed = RoofSet(
        [*ROOFS.ceilings[:3], ceiling("matrix", "fp16", 1 * TERA, median=0.2 * TERA)]
    )
    reason = bound_of(replace(STREAM, bytes=GIGA, dtype="fp16"), disturbed).reason
    shares = "memory 1%, fp16 arithmetic: no steady ceiling"
    assert (
        sentence(reason)
        == f"not every ceiling is known ({shares}): measure again when the machine is quiet"
    )
