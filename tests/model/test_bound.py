"""What holds a step back, by facts whose answer is known; and where a point is put."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.model.bound import Facts, bound_of
from gpulab.model.ceilings import Ceiling, Roofs
from gpulab.model.roofline import point_of

GIGA, TERA = 1e9, 1e12


def ceiling(roof, kind, best, source="measured"):
    return Ceiling(roof=roof, kind=kind, unit="", best=best, median=best, source=source)


MEMORY = [ceiling("device memory", "update", 100 * GIGA), ceiling("device memory", "copy", 50 * GIGA)]
ROOFS = Roofs(
    [
        *MEMORY,
        ceiling("cache", "read", 300 * GIGA),
        ceiling("matrix", "fp32", 1 * TERA),
        ceiling("launch", "enqueue", 2e-6),
        ceiling("launch", "spacing", 1e-6),
        ceiling("host to device", "pinned", 50 * GIGA),
    ]
)
STREAM = Facts(seconds=1.0, bytes=int(80 * GIGA), flops=int(10 * GIGA), cache_bytes=2**25)


@pytest.mark.parametrize(
    ("facts", "bound", "said"),
    [
        (STREAM, "memory", "memory 80%"),
        (replace(STREAM, flops=None), "memory", "fewer bytes"),
        (replace(STREAM, bytes=int(44 * GIGA)), "latency", "no roof is near"),
        (replace(STREAM, bytes=int(46 * GIGA)), "memory", "as fast as a copy"),
        (replace(STREAM, flops=int(900 * GIGA), bytes=GIGA), "compute", "fp32 arithmetic 90%"),
        (replace(STREAM, flops=int(1200 * GIGA)), "compute", "above the roof"),
        (replace(STREAM, bytes=int(250 * GIGA)), "cache", "2.5x of what device memory can"),
        (Facts(seconds=1e-4, bytes=2**24, cache_bytes=2**25), "cache", "1.7x of what device memory can"),
        (Facts(seconds=2.4e-4, bytes=2**24, cache_bytes=2**25), "cache", "fit into the cache"),
        (Facts(seconds=2.4e-4, bytes=2**24, cache_bytes=2**25, hot=False), "memory", "memory 70%"),
        (replace(STREAM, dram_bytes=1e9), "cache", "counted only 1% of its bytes"),
        (Facts(seconds=3.6e-4, bytes=2**24, cache_bytes=2**22, cache_seen=True), "memory", "as fast as a copy"),
        (Facts(seconds=2.4e-4, bytes=2**24, cache_bytes=2**24, cache_seen=True), "cache", "fit into the cache"),
        (
            Facts(seconds=2e-5, bytes=2**24, cache_bytes=2**25),
            "cache",
            "280% of the last-level cache's roof, so a nearer",
        ),
        (replace(STREAM, bytes=int(130 * GIGA), dram_bytes=110e9), "memory", "above the roof"),
        (replace(STREAM, dtype="fp16"), "memory", "fp16 arithmetic: no ceiling known here"),
        (replace(STREAM, bytes=GIGA, dtype="fp16"), "unknown", "(memory 1%, fp16 arithmetic: no ceiling known here)"),
        (Facts(seconds=1e-5, bytes=1000, flops=100, launches=4), "launch", "its 4 operations takes 80%"),
        (Facts(seconds=5e-5, bytes=1000, flops=100, launches=1), "latency", "no roof is near"),
        (Facts(seconds=4e-5, bytes=1000, flops=100, launches=3), "launch", "15% of its time bare, and several times"),
        (Facts(seconds=4e-5, bytes=1000, flops=int(14e6), launches=3), "latency", "fp32 arithmetic 35%"),
        (replace(STREAM, bytes=None, wait=("data", 0.57)), "latency", "its data phase takes 57% of the time"),
        (replace(STREAM, bytes=None, wait=("data", 0.1)), "latency", "too little in flight"),
        (replace(STREAM, wait=("data", 0.3)), "memory", "memory 80%"),
        (Facts(seconds=1e-5, bytes=1000, flops=100, waiting=0.3), "launch", "waits for the host 30%"),
        (Facts(seconds=1e-2, bytes=1000, flops=100, launches=640, waiting=0.8), "launch", "waits for the host 80%"),
        (Facts(seconds=0.1, bytes=1000, flops=100, launches=1, waiting=0.9), "latency", "and not for launches"),
        (Facts(seconds=1e-5, bytes=1000, launches=4, on_device=True), "latency", "no roof is near"),
        (Facts(seconds=1.0, bytes=int(45 * GIGA), roof="host to device"), "link", "90% of the host to device link"),
        (Facts(seconds=1.0, bytes=int(10 * GIGA), roof="host to device"), "latency", "only 20%"),
        (Facts(seconds=1.0, bytes=int(70 * GIGA), roof="host to device"), "link", "above the roof"),
        (
            Facts(seconds=1.0, bytes=int(10 * GIGA), flops=int(9e11), roof="host to device"),
            "compute",
            "20% of the host to device link, fp32 arithmetic 90%",
        ),
        (replace(STREAM, bytes=None, flops=int(700 * GIGA)), "compute", "70%"),
    ],
)
def test_the_bound_follows_from_the_evidence_and_says_so(facts, bound, said):
    found = bound_of(facts, ROOFS)
    assert (found.name, said in found.why) == (bound, True), found.why


def test_what_launches_cost_is_never_taken_for_memory():
    """Many tiny operations on data in the cache: their rates are low because of how often they are started."""
    for launches in (1, 10, 1000):
        tiny = Facts(seconds=2.5e-6 * launches, bytes=12 * launches, flops=launches, launches=launches)
        assert bound_of(tiny, ROOFS).name == "launch"


def test_nothing_is_said_without_declared_work_or_a_ceiling():
    assert bound_of(Facts(seconds=1.0), ROOFS) is None
    assert bound_of(STREAM, Roofs([])) is None
    assert bound_of(replace(STREAM, bytes=None, dtype="fp8"), ROOFS) is None
    assert bound_of(Facts(seconds=1.0, bytes=1, roof="device to host"), ROOFS) is None


@given(st.integers(1, 10**13), st.integers(1, 10**13), st.floats(1e-7, 1e3))
def test_attainable_is_the_lower_of_the_two_roofs_at_the_intensity(flops, moved, seconds):
    found = bound_of(Facts(seconds=seconds, bytes=moved, flops=flops, hot=False), ROOFS)
    beyond = moved / seconds > 1.05 * 100 * GIGA  # faster than memory, so out of the cache
    bandwidth = 300 * GIGA if beyond else 100 * GIGA
    assert found.attainable == pytest.approx(min(1 * TERA, bandwidth * flops / moved), rel=1e-9)


def test_a_point_carries_the_interval_of_its_time():
    found = point_of("one", STREAM, ROOFS, low_s=0.9, high_s=1.25, work="declared")
    assert found.intensity == pytest.approx(0.125)
    assert found.attainable == pytest.approx(12.5 * GIGA)
    assert (found.fraction, found.fraction_low, found.fraction_high) == pytest.approx((0.8, 0.64, 0.8 / 0.9))
    assert found.rate_low < found.rate < found.rate_high
    bar = point_of("two", replace(STREAM, flops=None), ROOFS, low_s=None, high_s=None, work="declared")
    assert (bar.intensity, bar.unit, bar.rate_low) == (None, "B/s", None)
    assert bar.fraction == pytest.approx(0.8)
