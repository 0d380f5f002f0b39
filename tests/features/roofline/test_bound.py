"""What limits a step, by facts whose answer is known."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.core.estimate import Estimate
from gpulab.features.roofline.bound import Point, StepFacts, limit_of
from gpulab.features.roofline.ceilings import RoofSet, ceiling_from
from gpulab.features.roofline.events import Ceiling

GIGA, TERA = 1e9, 1e12


def ceiling(roof, kind, best, median=None):
    return Ceiling(roof=roof, kind=kind, unit="", best=best, median=median or best)


ROOFS = RoofSet(
    [
        ceiling("device memory", "update", 100 * GIGA),
        ceiling("device memory", "copy", 50 * GIGA),
        ceiling("cache", "read", 300 * GIGA),
        ceiling("matrix", "fp32", 1 * TERA),
        ceiling("launch", "enqueue", 2e-6),
        ceiling("page fault", "", 1e-6),
        ceiling("host to device", "pinned", 50 * GIGA),
    ]
)
STREAM = StepFacts(
    time_s=Estimate(value=1.0), bytes=int(80 * GIGA), flops=int(10 * GIGA), cache_bytes=2**25
)
SMALL = StepFacts(time_s=Estimate(value=2.4e-4), bytes=2**24, cache_bytes=2**25)
TINY = StepFacts(time_s=Estimate(value=1e-5), bytes=1000, flops=100)
LINK = StepFacts(time_s=Estimate(value=1.0), bytes=int(10 * GIGA), roof="host to device")


@pytest.mark.parametrize(
    ("facts", "kind", "code", "values"),
    [
        (
            STREAM,
            "memory",
            "near_memory_roof",
            {"memory": 0.8, "arithmetic": 0.01, "dtype": "fp32"},
        ),
        (replace(STREAM, bytes=int(39 * GIGA)), "unexplained", "unexplained", {"memory": 0.39}),
        (
            replace(STREAM, bytes=int(46 * GIGA)),
            "memory",
            "near_memory_roof",
            {"as_fast_as": "copy"},
        ),
        (
            replace(STREAM, flops=int(900 * GIGA), bytes=GIGA),
            "compute",
            "near_compute_roof",
            {"arithmetic": 0.9},
        ),
        (
            replace(STREAM, bytes=GIGA, dtype="fp16"),
            "unknown",
            "ceilings_missing",
            {"memory": 0.01, "arithmetic": None, "dtype": "fp16"},
        ),
    ],
)
def test_rates_against_the_roofs_of_memory_and_compute(facts, kind, code, values):
    check(facts, kind, code, values)


@pytest.mark.parametrize(
    ("facts", "kind", "code", "values"),
    [
        (
            replace(STREAM, bytes=int(250 * GIGA)),
            "cache",
            "bytes_stay_in_cache",
            {"memory": 2.5, "cache": 5 / 6},
        ),
        (
            replace(SMALL, time_s=Estimate(value=2e-5)),
            "cache",
            "bytes_stay_in_cache",
            {"cache": 2.796},
        ),
        (SMALL, "cache", "bytes_fit_cache", {"memory": 0.699}),
        (replace(SMALL, cache_bytes=2**24), "cache", "bytes_fit_cache", {}),
        (replace(SMALL, hot=False), "memory", "near_memory_roof", {"memory": 0.699}),
        (replace(STREAM, dram_bytes=1e9), "cache", "few_bytes_in_memory", {"counted": 0.0125}),
    ],
)
def test_bytes_that_stay_in_a_cache(facts, kind, code, values):
    check(facts, kind, code, values)


def beside(facts, **shares):
    """With shares of the step on something else than its work."""
    return replace(facts, others=shares)


NO_WORK = replace(STREAM, bytes=None, flops=None)


@pytest.mark.parametrize(
    ("facts", "kind", "code", "values"),
    [
        (
            beside(replace(TINY, launches=4), launching=0.8),
            "launch",
            "launches_take_the_time",
            {"operations": 4, "share": 0.8},
        ),
        (beside(TINY, launching=0.04), "unexplained", "unexplained", {"launching": 0.04}),
        (beside(TINY, preempted=0.5), "preempted", "thread_is_preempted", {"share": 0.5}),
        (
            beside(replace(TINY, faults=6.0), faulting=0.6, launching=0.3),
            "page faults",
            "page_faults_take_the_time",
            {"faults": 6.0, "share": 0.6},
        ),
        (
            replace(beside(NO_WORK, phase=0.57, waited=0.6), phase="data"),
            "latency",
            "phase_waits",
            {"phase": "data", "share": 0.57},
        ),
        (replace(beside(STREAM, phase=0.3), phase="data"), "memory", "near_memory_roof", {}),
        (beside(TINY, waited=0.9), "waiting", "thread_waits", {"share": 0.9}),
        (beside(TINY, faulting=0.1), "unexplained", "unexplained", {"faulting": 0.1}),
        (beside(TINY, waited=0.1), "unexplained", "unexplained", {"waited": 0.1}),
    ],
)
def test_what_a_cpu_does_beside_the_work(facts, kind, code, values):
    check(facts, kind, code, values)


ON_GPU = replace(TINY, on_gpu=True, launches=4)
IN_FLIGHT = {
    "sm": 0.9,
    "occupancy": 0.3,
    "tensor": 0.1,
    "fp32": 0.1,
    "dram": 0.2,
    "power_w": 690.0,
    "power_limit_w": 700.0,
}


def counted(waiting=0.0, **counters):
    return replace(beside(ON_GPU, waiting=waiting), counters=IN_FLIGHT | counters)


@pytest.mark.parametrize(
    ("facts", "kind", "code", "values"),
    [
        (
            beside(ON_GPU, waiting=0.3, launching=0.2),
            "launch",
            "device_waits_for_launches",
            {"share": 0.3},
        ),
        (
            beside(ON_GPU, waiting=0.8, launching=0.1),
            "host",
            "device_waits_for_host",
            {"launching": 0.1},
        ),
        (
            replace(beside(ON_GPU, waiting=0.8, launching=0.1, phase=0.7), phase="data"),
            "latency",
            "phase_waits",
            {"phase": "data"},
        ),
        (beside(ON_GPU, communicating=0.3), "communication", "only_communicates", {"share": 0.3}),
        (beside(ON_GPU, communicating=0.1), "unexplained", "unexplained", {}),
        (
            replace(beside(ON_GPU, waiting=0.3, launching=0.3), launches=1),
            "unexplained",
            "unexplained",
            {},
        ),
        (counted(sm=0.4), "latency", "too_little_in_flight", {"sm": 0.4}),
        (counted(occupancy=0.1), "latency", "too_little_in_flight", {"occupancy": 0.1}),
        (counted(occupancy=0.8), "latency", "warps_wait", {}),
        (counted(fp16=0.7), "compute", "pipe_is_busy", {"pipe": "fp16"}),
        (counted(0.6, fp16=0.7), "host", "device_waits_for_host", {}),
        (
            replace(counted(), at_power_cap=True),
            "power",
            "at_power_cap",
            {"power_w": 690.0, "power_limit_w": 700.0},
        ),
        (counted(), "unexplained", "unexplained", {"sm": 0.9}),
        (
            replace(beside(ON_GPU, waiting=0.1), bytes=10**5, dram_bytes=7e5),
            "memory",
            "counted_near_memory_roof",
            {"dram": 0.7 / 0.9, "ratio": 7.0},
        ),
    ],
)
def test_what_a_gpu_counts_and_waits_for(facts, kind, code, values):
    check(facts, kind, code, values)


def roof_between(low, high):
    median = (low + high) / 2
    return Ceiling(
        roof="device memory",
        kind="read",
        unit="",
        best=high,
        median=median,
        median_low=low,
        median_high=high,
    )


@pytest.mark.parametrize(
    ("moved", "kind", "or_else"),
    [
        (30, "unexplained", ()),
        (50, "unexplained", ("memory",)),
        (55, "memory", ("unexplained",)),
        (65, "memory", ()),
        (90, "memory", ("cache",)),
        (120, "cache", ()),
    ],
)
def test_a_bound_that_differs_within_the_intervals_is_unsure(moved, kind, or_else):
    """The roof is between 80 and 100 GB/s."""
    step = StepFacts(time_s=Estimate(value=1.0), bytes=moved * 10**9)
    bound = limit_of(
        "one", step, RoofSet([roof_between(8e10, 1e11), ceiling("cache", "read", 1.2e11)])
    )
    assert (bound.bound, tuple(bound.or_else)) == (kind, or_else)


@given(st.integers(1, 10**12), st.floats(1, 1.4), st.floats(1, 1.4), st.booleans())
def test_a_sure_bound_is_the_same_wherever_in_the_intervals_time_and_roof_are(
    moved, wide, drift, at_low
):
    """And nothing that single samples say of a roof changes it."""
    roofs = RoofSet([roof_between(8e10, 8e10 * wide), ceiling("cache", "read", 2e11)])
    step = StepFacts(time_s=Estimate(value=1.0, low=1 / drift, high=drift), bytes=moved)
    bound = limit_of("one", step, roofs)
    end_s, roof = (1 / drift, 8e10) if at_low else (drift, 8e10 * wide)
    there = limit_of(
        "one",
        StepFacts(time_s=Estimate(value=end_s), bytes=moved),
        RoofSet([ceiling("device memory", "read", roof), roofs.ceilings[1]]),
    )
    assert there.bound in (bound.bound, *bound.or_else)


@given(
    st.lists(st.floats(90, 110), min_size=60, max_size=100), st.floats(0.001, 1), st.floats(1, 1.49)
)
def test_one_bad_sample_of_a_roof_names_no_cause(rates, low, high):
    """A worst sample of 1.54 GB/s once made 2 % of a roof "cache-resident"."""
    times_s = [1 / (rate * 1e9) for rate in rates]
    step = StepFacts(time_s=Estimate(value=1.0), bytes=2 * 10**9, cache_bytes=2**33)
    for extreme in (low, high):
        sampled = [ceiling_from("cache", "read", 1, [*times_s, 1 / (extreme * 1e11)])]
        bound = limit_of("one", step, RoofSet([ceiling("device memory", "read", 5e10), *sampled]))
        assert (bound.bound, bound.or_else) == ("unexplained", [])


@pytest.mark.parametrize(
    ("facts", "kind", "code", "values"),
    [
        (
            replace(LINK, bytes=int(45 * GIGA)),
            "link",
            "near_link_roof",
            {"link": "host to device", "share": 0.9},
        ),
        (LINK, "latency", "far_from_link_roof", {"share": 0.2}),
        (
            replace(LINK, flops=int(900 * GIGA)),
            "compute",
            "near_compute_roof",
            {"share": 0.2, "arithmetic": 0.9, "dtype": "fp32"},
        ),
    ],
)
def test_the_link_that_a_scenario_names(facts, kind, code, values):
    check(facts, kind, code, values)


def check(facts, kind, code, values):
    bound = limit_of("one", facts, ROOFS)
    assert (bound.bound, bound.reason.code) == (kind, code), bound.reason
    for name, value in values.items():
        assert bound.reason.values[name] == (
            pytest.approx(value, rel=1e-3) if isinstance(value, float) else value
        )


def test_a_step_that_declares_nothing_has_a_cause_by_its_profile():
    for roofs in (ROOFS, RoofSet([])):
        waits = limit_of("one", beside(NO_WORK, waited=0.9), roofs)
        assert (waits.bound, isinstance(waits, Point)) == ("waiting", False)
        longest = limit_of("one", replace(NO_WORK, longest_operation=("aten::mm", 0.98)), roofs)
        assert (longest.bound, longest.reason.values) == (
            "unknown",
            {"operation": "aten::mm", "share": 0.98},
        )


def test_no_bound_without_declared_work_or_a_ceiling():
    assert limit_of("one", StepFacts(time_s=Estimate(value=1.0)), ROOFS) is None
    assert limit_of("one", STREAM, RoofSet([])) is None
    assert limit_of("one", replace(STREAM, bytes=None, dtype="fp8"), ROOFS) is None
    assert (
        limit_of(
            "one", StepFacts(time_s=Estimate(value=1.0), bytes=1, roof="device to host"), ROOFS
        )
        is None
    )


@given(st.integers(1, 10**13), st.integers(1, 10**13), st.floats(1e-7, 1e3))
def test_attainable_is_the_lower_of_the_two_roofs_at_the_intensity(flops, moved, seconds):
    bound = limit_of(
        "one", StepFacts(time_s=Estimate(value=seconds), bytes=moved, flops=flops, hot=False), ROOFS
    )
    beyond = moved / seconds > 1.05 * 100 * GIGA  # faster than memory, so out of the cache
    bandwidth = 300 * GIGA if beyond else 100 * GIGA
    assert bound.attainable == pytest.approx(min(1 * TERA, bandwidth * flops / moved), rel=1e-9)
