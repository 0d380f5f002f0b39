"""What limits a step, by facts whose answer is known; and where a point is put."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.analysis.bound import bound_of
from gpulab.analysis.ceilings import RoofSet
from gpulab.analysis.evidence import DeviceCounters, StepFacts
from gpulab.analysis.roofline import point_of
from gpulab.protocol.ceiling import Ceiling

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
STREAM = StepFacts(seconds=1.0, bytes=int(80 * GIGA), flops=int(10 * GIGA), cache_bytes=2**25)
SMALL = StepFacts(seconds=2.4e-4, bytes=2**24, cache_bytes=2**25)
TINY = StepFacts(seconds=1e-5, bytes=1000, flops=100)
LINK = StepFacts(seconds=1.0, bytes=int(10 * GIGA), roof="host to device")


@pytest.mark.parametrize(
    ("facts", "kind", "code", "values"),
    [
        (STREAM, "memory", "near_memory_roof", {"memory": 0.8, "arithmetic": 0.01, "dtype": "fp32"}),
        (replace(STREAM, flops=None), "memory", "near_memory_roof", {"memory": 0.8}),
        (replace(STREAM, bytes=int(44 * GIGA)), "unexplained", "unexplained", {"memory": 0.44}),
        (replace(STREAM, bytes=int(46 * GIGA)), "memory", "near_memory_roof", {"as_fast_as": "copy"}),
        (replace(STREAM, flops=int(900 * GIGA), bytes=GIGA), "compute", "near_compute_roof", {"arithmetic": 0.9}),
        (replace(STREAM, flops=int(1200 * GIGA)), "compute", "above_compute_roof", {"arithmetic": 1.2}),
        (replace(STREAM, bytes=None, flops=int(700 * GIGA)), "compute", "near_compute_roof", {"arithmetic": 0.7}),
        (replace(STREAM, bytes=int(130 * GIGA), dram_bytes=110e9), "memory", "above_memory_roof", {"memory": 1.3}),
        (replace(STREAM, dtype="fp16"), "memory", "near_memory_roof", {"arithmetic": None, "missing": "unknown"}),
        (
            replace(STREAM, bytes=GIGA, dtype="fp16"),
            "unknown",
            "ceilings_missing",
            {"memory": 0.01, "arithmetic": None, "dtype": "fp16", "missing": "unknown"},
        ),
    ],
)
def test_rates_against_the_roofs_of_memory_and_compute(facts, kind, code, values):
    check(facts, kind, code, values)


@pytest.mark.parametrize(
    ("facts", "kind", "code", "values"),
    [
        (replace(STREAM, bytes=int(250 * GIGA)), "cache", "bytes_stay_in_cache", {"memory": 2.5, "cache": 5 / 6}),
        (
            replace(SMALL, seconds=1e-4),
            "cache",
            "bytes_stay_in_cache",
            {"memory": 1.678, "may_move_fewer_bytes": False},
        ),
        (replace(SMALL, seconds=2e-5), "cache", "bytes_stay_in_cache", {"cache": 2.796, "nearer_cache": True}),
        (SMALL, "cache", "bytes_fit_cache", {"memory": 0.699}),
        (replace(SMALL, cache_bytes=2**24, cache_seen=True), "cache", "bytes_fit_cache", {}),
        (replace(SMALL, hot=False), "memory", "near_memory_roof", {"memory": 0.699}),
        (
            replace(SMALL, seconds=3.6e-4, cache_bytes=2**22, cache_seen=True),
            "memory",
            "near_memory_roof",
            {"as_fast_as": "copy"},
        ),
        (replace(STREAM, dram_bytes=1e9), "cache", "few_bytes_in_memory", {"counted": 0.0125}),
    ],
)
def test_bytes_that_stay_in_a_cache(facts, kind, code, values):
    check(facts, kind, code, values)


@pytest.mark.parametrize(
    ("facts", "kind", "code", "values"),
    [
        (replace(TINY, launches=4), "launch", "launches_take_the_time", {"operations": 4, "share": 0.8}),
        (replace(TINY, seconds=5e-5, launches=1), "unexplained", "unexplained", {"launching": 0.04}),
        (replace(TINY, seconds=4e-5, launches=3), "unexplained", "unexplained", {"launching": 0.15}),
        (replace(TINY, launches=2, contention=0.5), "launch", "launches_take_the_time", {"share": 0.8}),
        (replace(TINY, contention=0.5), "preempted", "thread_is_preempted", {"share": 0.5}),
        (replace(TINY, contention=0.5, strided=0.9), "latency", "strided_accesses", {}),  # while it runs, as well
        (replace(STREAM, bytes=int(40 * GIGA), contention=0.4, strided=0.9), "preempted", "thread_is_preempted", {}),
        (replace(TINY, faults=6.0), "page faults", "page_faults_take_the_time", {"faults": 6.0, "share": 0.6}),
        (replace(TINY, faults=1.0), "unexplained", "unexplained", {"faulting": 0.1}),
        (replace(TINY, strided=0.9), "latency", "strided_accesses", {"share": 0.9}),
        (replace(TINY, strided=0.3), "unexplained", "unexplained", {}),
        (replace(TINY, launches=4, strided=0.9), "launch", "launches_take_the_time", {}),
        (
            replace(STREAM, bytes=None, waiting_phase=("data", 0.57)),
            "latency",
            "phase_waits",
            {"phase": "data", "share": 0.57},
        ),
        (replace(STREAM, bytes=None, waiting_phase=("data", 0.1)), "unexplained", "unexplained", {}),
        (replace(STREAM, waiting_phase=("data", 0.3)), "memory", "near_memory_roof", {}),
    ],
)
def test_what_a_cpu_does_beside_the_work(facts, kind, code, values):
    check(facts, kind, code, values)


ON_GPU = replace(TINY, on_gpu=True, launches=4)
IN_FLIGHT = DeviceCounters(sm=0.9, occupancy=0.3, tensor=0.1, fp32=0.1, dram=0.2, power=400.0, limit=700.0)


@pytest.mark.parametrize(
    ("facts", "kind", "code", "values"),
    [
        (replace(ON_GPU, waiting=0.3), "launch", "device_waits_for_launches", {"share": 0.3}),
        (replace(ON_GPU, seconds=1e-2, waiting=0.8), "host", "device_waits_for_host", {"share": 0.8}),
        (replace(ON_GPU, seconds=1e-2, waiting=0.8, launching=0.5), "launch", "device_waits_for_launches", {}),
        (replace(ON_GPU, waiting=0.8, launching=0.1), "host", "device_waits_for_host", {"launching": 0.1}),
        (
            replace(ON_GPU, waiting=0.8, launching=0.1, waiting_phase=("data", 0.7)),
            "latency",
            "phase_waits",
            {"phase": "data"},
        ),
        (replace(ON_GPU, launches=1, waiting=0.3), "unexplained", "unexplained", {}),
        (replace(ON_GPU, waiting=0.0), "unexplained", "unexplained", {}),
        (replace(ON_GPU, waiting=0.0, counters=IN_FLIGHT), "unexplained", "unexplained", {"sm": 0.9, "power": 400.0}),
        (
            replace(ON_GPU, waiting=0.0, counters=replace(IN_FLIGHT, sm=0.4)),
            "latency",
            "too_little_in_flight",
            {"sm": 0.4},
        ),
        (
            replace(ON_GPU, waiting=0.0, counters=replace(IN_FLIGHT, occupancy=0.1)),
            "latency",
            "too_little_in_flight",
            {"occupancy": 0.1},
        ),
        (replace(ON_GPU, waiting=0.0, counters=replace(IN_FLIGHT, occupancy=0.8)), "latency", "warps_wait", {}),
        (replace(ON_GPU, waiting=0.3, counters=replace(IN_FLIGHT, fp16=0.7)), "compute", "pipe_is_busy", {}),
        (
            replace(ON_GPU, waiting=0.6, counters=replace(IN_FLIGHT, fp16=0.7)),
            "launch",
            "device_waits_for_launches",
            {},
        ),
        (
            replace(ON_GPU, waiting=0.0, counters=replace(IN_FLIGHT, power=690.0, capped=True)),
            "power",
            "at_power_cap",
            {"power": 690.0, "limit": 700.0},
        ),
        (replace(ON_GPU, waiting=0.0, counters=replace(IN_FLIGHT, capped=True)), "unexplained", "unexplained", {}),
        (
            replace(ON_GPU, bytes=10**5, waiting=0.0, dram_bytes=7e5),
            "memory",
            "counted_near_memory_roof",
            {"dram": 0.7, "ratio": 7.0},
        ),
    ],
)
def test_what_a_gpu_counts_and_waits_for(facts, kind, code, values):
    check(facts, kind, code, values)


def test_a_roof_that_may_have_been_lower_is_near():
    """54 % of the best that a drifting machine showed is near, where its roof was seen to be a fifth lower as well."""
    drifting = RoofSet([Ceiling(roof="device memory", kind="update", unit="", best=1e11, median=9e10, low=8e10)])
    step = StepFacts(seconds=1.0, bytes=54 * 10**9)
    assert bound_of(step, drifting).reason.code == "near_memory_roof"
    assert bound_of(replace(step, bytes=44 * 10**9), drifting).reason.code == "unexplained"


@pytest.mark.parametrize(
    ("facts", "kind", "code", "values"),
    [
        (replace(LINK, bytes=int(45 * GIGA)), "link", "near_link_roof", {"link": "host to device", "share": 0.9}),
        (LINK, "latency", "far_from_link_roof", {"share": 0.2}),
        (replace(LINK, bytes=int(70 * GIGA)), "link", "above_link_roof", {"share": 1.4}),
        (
            replace(LINK, flops=int(900 * GIGA)),
            "compute",
            "link_and_near_compute_roof",
            {"share": 0.2, "arithmetic": 0.9, "dtype": "fp32"},
        ),
    ],
)
def test_the_link_that_a_scenario_names(facts, kind, code, values):
    check(facts, kind, code, values)


def check(facts, kind, code, values):
    bound = bound_of(facts, ROOFS)
    assert (bound.kind, bound.reason.code) == (kind, code), bound.reason
    for name, value in values.items():
        assert bound.reason.values[name] == (pytest.approx(value, rel=1e-3) if isinstance(value, float) else value)


def test_a_reason_holds_only_what_is_known_of_the_step():
    assert set(bound_of(replace(STREAM, flops=None), ROOFS).reason.values) == {"memory"}
    assert set(bound_of(replace(STREAM, bytes=None), ROOFS).reason.values) == {"arithmetic", "dtype"}
    assert "nearer_cache" not in bound_of(replace(STREAM, bytes=int(250 * GIGA)), ROOFS).reason.values


def test_a_ceiling_that_was_measured_and_is_unsteady_differs_from_an_unknown_one():
    unsteady = RoofSet([ceiling("device memory", "copy", 50 * GIGA), ceiling("matrix", "fp32", TERA, median=TERA / 2)])
    reason = bound_of(replace(STREAM, bytes=GIGA), unsteady).reason
    assert (reason.code, reason.values["missing"]) == ("ceilings_missing", "unsteady")


def test_launch_cost_is_never_taken_for_memory():
    """Many tiny operations on data in the cache: their rates are low because of how often they are started."""
    for launches in (1, 10, 1000):
        tiny = StepFacts(seconds=2.5e-6 * launches, bytes=12 * launches, flops=launches, launches=launches)
        assert bound_of(tiny, ROOFS).kind == "launch"


def test_no_bound_without_declared_work_or_a_ceiling():
    assert bound_of(StepFacts(seconds=1.0), ROOFS) is None
    assert bound_of(STREAM, RoofSet([])) is None
    assert bound_of(replace(STREAM, bytes=None, dtype="fp8"), ROOFS) is None
    assert bound_of(StepFacts(seconds=1.0, bytes=1, roof="device to host"), ROOFS) is None


@given(st.integers(1, 10**13), st.integers(1, 10**13), st.floats(1e-7, 1e3))
def test_attainable_is_the_lower_of_the_two_roofs_at_the_intensity(flops, moved, seconds):
    bound = bound_of(StepFacts(seconds=seconds, bytes=moved, flops=flops, hot=False), ROOFS)
    beyond = moved / seconds > 1.05 * 100 * GIGA  # faster than memory, so out of the cache
    bandwidth = 300 * GIGA if beyond else 100 * GIGA
    assert bound.attainable == pytest.approx(min(1 * TERA, bandwidth * flops / moved), rel=1e-9)


def test_a_point_carries_the_interval_of_its_time():
    point = point_of("one", STREAM, ROOFS, low_s=0.9, high_s=1.25)
    assert point.intensity == pytest.approx(0.125)
    assert point.attainable == pytest.approx(12.5 * GIGA)
    assert (point.fraction, point.fraction_low, point.fraction_high) == pytest.approx((0.8, 0.64, 0.8 / 0.9))
    assert point.rate_low < point.rate < point.rate_high
    assert (point.reason.code, point.is_drawable) == ("near_memory_roof", True)
    bar = point_of("two", replace(STREAM, flops=None), ROOFS, low_s=None, high_s=None)
    assert (bar.intensity, bar.unit, bar.rate_low, bar.is_drawable) == (None, "B/s", None, False)
    assert bar.fraction == pytest.approx(0.8)


def test_the_interval_of_a_share_holds_the_error_of_the_roof():
    roof = Ceiling(roof="device memory", kind="update", unit="", best=1e11, median=9e10, low=8e10, high=1e11)
    point = point_of("one", StepFacts(seconds=1.0, bytes=6 * 10**10), RoofSet([roof]), low_s=0.9, high_s=1.2)
    assert (point.fraction, point.fraction_low) == pytest.approx((0.6, 0.5))
    assert point.fraction_high == pytest.approx(0.6 / 0.9 / 0.8)


def test_a_share_of_a_roof_that_took_turns_with_the_variant_is_the_median_of_what_each_process_gives():
    """The machine was three times as fast in some processes: their own roof was so, too."""
    roof = Ceiling(roof="matrix", kind="fp32", unit="", best=1e12, median=1e12, low=5e11, high=1.5e12, processes=9)
    steady = RoofSet([roof, ceiling("matrix", "fp32", 2e12)])
    shares = [0.78, 0.79, 0.8, 0.8, 0.8, 0.8, 0.81, 0.82, 0.83]
    beside = {("matrix", "fp32"): [share / 1e12 for share in shares]}
    facts = StepFacts(seconds=0.5, flops=10**12)
    point = point_of("one", facts, steady, low_s=0.2, high_s=0.9, beside=beside)
    assert (point.roof, point.roof_processes) == ("matrix fp32", 9)
    assert (point.fraction, point.fraction_low, point.fraction_high) == pytest.approx((0.8, 0.78, 0.83))
    few = point_of("one", facts, steady, low_s=0.2, high_s=0.9, beside={("matrix", "fp32"): [8e-13] * 3})
    assert (few.fraction, few.fraction_low) == (pytest.approx(0.8), None)


@pytest.mark.parametrize(("counted", "ratio"), [(None, None), (9.0e10, None), (3.2e11, 4.0), (2e10, 0.25)])
def test_counted_bytes_are_a_field_of_their_own(counted, ratio):
    point = point_of("one", replace(STREAM, dram_bytes=counted), ROOFS, low_s=None, high_s=None)
    assert (point.bytes_counted, point.bytes_ratio) == (counted, pytest.approx(ratio) if ratio else None)
