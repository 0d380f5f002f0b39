"""What limits a step, by facts whose answer is known."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.core.estimate import Estimate
from gpulab.features.roofline.bound import bound_of
from gpulab.features.roofline.ceilings import RoofSet, ceiling_from
from gpulab.features.roofline.events import Ceiling
from gpulab.features.roofline.evidence import DeviceCounters, StepFacts

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
            replace(STREAM, flops=int(1200 * GIGA)),
            "compute",
            "above_compute_roof",
            {"arithmetic": 1.2},
        ),
        (
            replace(STREAM, bytes=int(130 * GIGA), dram_bytes=110e9),
            "memory",
            "above_memory_roof",
            {"memory": 1.3},
        ),
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
            {"cache": 2.796, "nearer_cache": True},
        ),
        (SMALL, "cache", "bytes_fit_cache", {"memory": 0.699}),
        (replace(SMALL, cache_bytes=2**24, cache_seen=True), "cache", "bytes_fit_cache", {}),
        (replace(SMALL, hot=False), "memory", "near_memory_roof", {"memory": 0.699}),
        (replace(STREAM, dram_bytes=1e9), "cache", "few_bytes_in_memory", {"counted": 0.0125}),
    ],
)
def test_bytes_that_stay_in_a_cache(facts, kind, code, values):
    check(facts, kind, code, values)


@pytest.mark.parametrize(
    ("facts", "kind", "code", "values"),
    [
        (
            replace(TINY, launches=4),
            "launch",
            "launches_take_the_time",
            {"operations": 4, "share": 0.8},
        ),
        (
            replace(TINY, time_s=Estimate(value=5e-5), launches=1),
            "unexplained",
            "unexplained",
            {"launching": 0.04},
        ),
        (replace(TINY, preempted=0.5), "preempted", "too_disturbed", {"share": 0.5}),
        # while it runs, as well
        (replace(TINY, preempted=0.5, strided=0.9), "latency", "strided_accesses", {}),
        (
            replace(STREAM, bytes=int(39 * GIGA), preempted=0.4, strided=0.9),
            "preempted",
            "thread_is_preempted",
            {},
        ),
        (
            replace(TINY, faults=6.0),
            "page faults",
            "page_faults_take_the_time",
            {"faults": 6.0, "share": 0.6},
        ),
        (replace(TINY, strided=0.9), "latency", "strided_accesses", {"share": 0.9}),
        (replace(TINY, launches=4, strided=0.9), "launch", "launches_take_the_time", {}),
        (
            replace(STREAM, bytes=None, waiting_phase=("data", 0.57)),
            "latency",
            "phase_waits",
            {"phase": "data", "share": 0.57},
        ),
        (replace(STREAM, waiting_phase=("data", 0.3)), "memory", "near_memory_roof", {}),
        (
            replace(STREAM, bytes=None, communicating=0.3),
            "communication",
            "only_communicates",
            {"share": 0.3},
        ),
        (
            replace(TINY, waited=0.9, outside=1.0),
            "waiting",
            "thread_waits",
            {"share": 0.9},
        ),
        (replace(TINY, outside=0.9), "unexplained", "outside_of_torch", {"share": 0.9}),
        (replace(TINY, faults=1.0), "unexplained", "unexplained", {"faulting": 0.1}),
        (replace(TINY, strided=0.3), "unexplained", "unexplained", {}),
        (replace(STREAM, bytes=None, communicating=0.1), "unexplained", "unexplained", {}),
        (replace(TINY, waited=0.4), "unexplained", "unexplained", {"waited": 0.4}),
        (replace(TINY, short_operations=0.6), "launch", "launches_take_the_time", {"share": 0.6}),
        (replace(TINY, gathering=0.9), "latency", "random_accesses", {"share": 0.9}),
    ],
)
def test_what_a_cpu_does_beside_the_work(facts, kind, code, values):
    check(facts, kind, code, values)


ON_GPU = replace(TINY, on_gpu=True, launches=4)
IN_FLIGHT = DeviceCounters(
    sm=0.9, occupancy=0.3, tensor=0.1, fp32=0.1, dram=0.2, power_w=400.0, power_limit_w=700.0
)


@pytest.mark.parametrize(
    ("facts", "kind", "code", "values"),
    [
        (replace(ON_GPU, waiting=0.3), "launch", "device_waits_for_launches", {"share": 0.3}),
        (
            replace(ON_GPU, time_s=Estimate(value=1e-2), waiting=0.8, launching=0.5),
            "launch",
            "device_waits_for_launches",
            {},
        ),
        (
            replace(ON_GPU, waiting=0.8, launching=0.1),
            "host",
            "device_waits_for_host",
            {"launching": 0.1},
        ),
        (
            replace(ON_GPU, waiting=0.8, launching=0.1, waiting_phase=("data", 0.7)),
            "latency",
            "phase_waits",
            {"phase": "data"},
        ),
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
        (
            replace(ON_GPU, waiting=0.0, counters=replace(IN_FLIGHT, occupancy=0.8)),
            "latency",
            "warps_wait",
            {},
        ),
        (
            replace(ON_GPU, waiting=0.3, counters=replace(IN_FLIGHT, fp16=0.7)),
            "compute",
            "pipe_is_busy",
            {},
        ),
        (
            replace(ON_GPU, waiting=0.6, counters=replace(IN_FLIGHT, fp16=0.7)),
            "launch",
            "device_waits_for_launches",
            {},
        ),
        (
            replace(ON_GPU, waiting=0.0, counters=replace(IN_FLIGHT, power_w=690.0, capped=True)),
            "power",
            "at_power_cap",
            {"power_w": 690.0, "power_limit_w": 700.0},
        ),
        (
            replace(ON_GPU, waiting=0.0, counters=replace(IN_FLIGHT, capped=True)),
            "unexplained",
            "unexplained",
            {},
        ),
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
    bound = bound_of(step, RoofSet([roof_between(8e10, 1e11), ceiling("cache", "read", 1.2e11)]))
    assert (bound.kind, bound.or_else) == (kind, or_else)


@given(st.integers(1, 10**12), st.floats(1, 1.4), st.floats(1, 1.4), st.booleans())
def test_a_sure_bound_is_the_same_wherever_in_the_intervals_time_and_roof_are(
    moved, wide, drift, at_low
):
    """And nothing that single samples say of a roof changes it."""
    roofs = RoofSet([roof_between(8e10, 8e10 * wide), ceiling("cache", "read", 2e11)])
    step = StepFacts(time_s=Estimate(value=1.0, low=1 / drift, high=drift), bytes=moved)
    bound = bound_of(step, roofs)
    end_s, roof = (1 / drift, 8e10) if at_low else (drift, 8e10 * wide)
    there = bound_of(
        StepFacts(time_s=Estimate(value=end_s), bytes=moved),
        RoofSet([ceiling("device memory", "read", roof), roofs.ceilings[1]]),
    )
    assert there.kind in (bound.kind, *bound.or_else)


def test_more_than_the_median_of_a_roof_is_nothing_wrong_while_as_much_was_seen_of_it():
    """A power-capped GPU runs short steps faster than the long ones that its roof is of."""
    capped = RoofSet([ceiling("matrix", "fp32", 1.1 * TERA, median=TERA)])
    for flops, code in ((1.08, "near_compute_roof"), (1.2, "above_compute_roof")):
        assert (
            bound_of(
                StepFacts(time_s=Estimate(value=1.0), flops=int(flops * TERA)), capped
            ).reason.code
            == code
        )


@given(
    st.lists(st.floats(90, 110), min_size=60, max_size=100), st.floats(0.001, 1), st.floats(1, 1.49)
)
def test_one_bad_sample_of_a_roof_names_no_cause(rates, low, high):
    """A worst sample of 1.54 GB/s once made 2 % of a roof "cache-resident"."""
    times_s = [1 / (rate * 1e9) for rate in rates]
    step = StepFacts(time_s=Estimate(value=1.0), bytes=2 * 10**9, cache_bytes=2**33)
    for extreme in (low, high):
        sampled = [ceiling_from("cache", "read", 1, [*times_s, 1 / (extreme * 1e11)])]
        bound = bound_of(step, RoofSet([ceiling("device memory", "read", 5e10), *sampled]))
        assert (bound.kind, bound.or_else) == ("unexplained", ())


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
        assert bound.reason.values[name] == (
            pytest.approx(value, rel=1e-3) if isinstance(value, float) else value
        )


def test_a_ceiling_that_was_measured_and_is_unsteady_differs_from_an_unknown_one():
    unsteady = RoofSet(
        [
            ceiling("device memory", "copy", 50 * GIGA),
            ceiling("matrix", "fp32", TERA, median=TERA / 2),
        ]
    )
    reason = bound_of(replace(STREAM, bytes=GIGA), unsteady).reason
    assert (reason.code, reason.values["missing"]) == ("ceilings_missing", "unsteady")


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"waited": 0.9}, "waiting"),
        ({"outside": 0.9}, "unexplained"),
        ({"gathering": 0.9}, "latency"),
    ],
)
def test_a_step_that_declares_nothing_has_a_cause_by_its_profile(facts, kind):
    for roofs in (ROOFS, RoofSet([])):
        bound = bound_of(StepFacts(time_s=Estimate(value=1.0), **facts), roofs)
        assert (bound.kind, bound.ceiling) == (kind, None)
    longest = bound_of(
        StepFacts(time_s=Estimate(value=1.0), longest_operation=("aten::mm", 0.98)), ROOFS
    )
    assert (longest.kind, longest.reason.values) == (
        "unknown",
        {"operation": "aten::mm", "share": 0.98},
    )


def test_no_bound_without_declared_work_or_a_ceiling():
    assert bound_of(StepFacts(time_s=Estimate(value=1.0)), ROOFS) is None
    assert bound_of(STREAM, RoofSet([])) is None
    assert bound_of(replace(STREAM, bytes=None, dtype="fp8"), ROOFS) is None
    assert (
        bound_of(StepFacts(time_s=Estimate(value=1.0), bytes=1, roof="device to host"), ROOFS)
        is None
    )


@given(st.integers(1, 10**13), st.integers(1, 10**13), st.floats(1e-7, 1e3))
def test_attainable_is_the_lower_of_the_two_roofs_at_the_intensity(flops, moved, seconds):
    bound = bound_of(
        StepFacts(time_s=Estimate(value=seconds), bytes=moved, flops=flops, hot=False), ROOFS
    )
    beyond = moved / seconds > 1.05 * 100 * GIGA  # faster than memory, so out of the cache
    bandwidth = 300 * GIGA if beyond else 100 * GIGA
    assert bound.attainable == pytest.approx(min(1 * TERA, bandwidth * flops / moved), rel=1e-9)
