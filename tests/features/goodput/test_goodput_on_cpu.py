"""Goodput of traces of a CPU: the main thread by its innermost phase, and the time in which it did
not run.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from partitions import microseconds, partition_of, shares
from traces import (
    MAIN,
    OTHER_THREAD,
    call,
    copy,
    document,
    event,
    kernel,
    loader,
    loader_without_workers,
    op,
    phase,
)

from gpulab.features.goodput.analysis import partition
from gpulab.traces.trace import read


def test_without_phases_the_busy_time_is_useful():
    parts = partition_of(op("mm", 0, 300), op("copy_", 100, 200), op("mm", 500, 900, OTHER_THREAD))
    assert (parts.marked, parts.on_device) == (False, False)
    assert shares(parts)["useful"] == pytest.approx(0.3)


def test_each_instant_belongs_to_the_innermost_phase():
    assert microseconds(
        phase("useful", 0, 600),
        phase("data", 100, 300),
        phase("useful", 150, 200),
        phase("copy", 300, 350),
        phase("sync", 340, 420),
        phase("augment", 500, 550),
        op("mm", 500, 530),
        op("mm", 700, 750),
    ) == {"useful": 280, "other busy": 80, "copies": 40, "data wait": 150, "sync": 80, "other": 370}


ALLOCATING = (
    op("empty", 50, 60),
    op("new_empty", 55, 70),
    phase("data", 200, 300),
    op("empty", 210, 220),
    op("resize_", 400, 410),
    op("resize_as_", 420, 430),
)


def test_allocation_within_a_phase_belongs_to_the_phase():
    by_category = microseconds(phase("useful", 0, 200), *ALLOCATING)
    assert by_category == {"useful": 200, "alloc": 20, "data wait": 100, "other": 680}


def test_a_data_loader_waits_but_for_phases_within_it():
    assert microseconds(
        loader(0, 100),
        phase("useful", 50, 80),
        phase("useful", 200, 300),
        loader(220, 240),
        op("mm", 10, 90),
    ) == {"useful": 110, "data wait": 90, "other": 800}


def test_other_threads_and_foreign_annotations_mark_nothing():
    elsewhere = {**phase("useful", 0, 500), "tid": 2}
    without_prefix = event("user_annotation", "useful", 0, 500, MAIN)
    mirrored = event("gpu_user_annotation", "gpulab:useful", 0, 500, MAIN)
    assert not partition_of(elsewhere, without_prefix, mirrored).marked


STEP = (
    phase("useful", 0, 400),
    phase("data", 400, 500),
    phase("own", 500, 600),
    op("mm", 550, 580),
    op("mm", 600, 650),
)


@pytest.mark.parametrize(
    ("off_cpu", "moved"),
    [
        ({"useful": 100}, {"useful": 100}),
        ({"useful": 9000}, {"useful": 400}),
        ({"data": 100, "copy": 10, "sync": 10}, {}),
        ({"": 300}, {"other": 300}),
        ({"": 300, "own": 150}, {"other": 420, "other busy": 30}),
        ({"": 9000}, {"other": 420, "other busy": 80}),
        ({"": -5, "useful": -1}, {}),
    ],
)
def test_time_in_which_the_thread_did_not_run(off_cpu, moved):
    expected = {
        "useful": 400,
        "other busy": 80,
        "data wait": 100,
        "other": 420,
        "preempted": sum(moved.values()),
    }
    for category, length in moved.items():
        expected[category] -= length
    by_category = microseconds(
        *STEP, off_cpu={name: 1e-6 * length for name, length in off_cpu.items()}
    )
    assert by_category == {category: length for category, length in expected.items() if length}


def test_waiting_for_a_data_loader_is_not_preempted():
    events = op("mm", 0, 500), loader(500, 800)
    assert microseconds(*events, off_cpu={"": 310e-6}) == {
        "useful": 500,
        "data wait": 300,
        "other": 190,
        "preempted": 10,
    }
    assert microseconds(phase("useful", 0, 900), loader(500, 800), off_cpu={"useful": 310e-6}) == {
        "useful": 590,
        "data wait": 300,
        "other": 100,
        "preempted": 10,
    }


def test_a_loader_without_workers_runs_and_has_its_part_of_what_is_off_the_cpu():
    events = loader_without_workers(0, 400), op("mm", 400, 900)
    assert microseconds(*events, off_cpu={"": 300e-6}) == {
        "useful": 420,
        "data wait": 400,
        "preempted": 180,
    }
    assert microseconds(*events, loader(900, 1000), off_cpu={"": 190e-6}) == {
        "useful": 450,
        "data wait": 500,
        "preempted": 50,
    }
    within = phase("useful", 0, 500), loader_without_workers(0, 250)
    assert microseconds(*within, off_cpu={"useful": 100e-6}) == {
        "useful": 200,
        "data wait": 250,
        "other": 500,
        "preempted": 50,
    }


def test_an_empty_window_has_no_parts():
    for parts in (partition_of(*STEP, length=0), partition_of(length=0)):
        assert parts.window_s == 0
        assert set(parts.seconds.values()) == {0}


def test_a_long_clock_costs_no_digits():
    """Seconds since boot in microseconds leave a nanosecond of resolution: the window is measured
    from its start.
    """
    trace = document(phase("useful", 0, 500.25))
    for raw in trace["traceEvents"]:
        raw["ts"] += 2.0**42
    assert partition(read(trace)).seconds["useful"] == pytest.approx(500.25e-6, abs=1e-14)


ZEROS = [st.just(0)] * 2
TIMES = st.tuples(st.floats(-200, 1200), st.floats(0, 400))
OF_HOST = st.one_of(
    st.builds(phase, st.sampled_from(["useful", "data", "copy", "sync", "own"]), *ZEROS),
    st.builds(op, st.sampled_from(["mm", "empty"]), *ZEROS, st.sampled_from([MAIN, OTHER_THREAD])),
    st.builds(loader, *ZEROS),
    st.builds(loader_without_workers, *ZEROS),
)
OF_DEVICE = st.one_of(
    st.builds(
        call,
        st.sampled_from(["cudaMalloc", "cudaLaunchKernel", "cudaMemcpy"]),
        *ZEROS,
        st.integers(1, 3),
    ),
    st.builds(kernel, *ZEROS, st.integers(1, 3), st.sampled_from(["gemm", "ncclKernel"])),
    st.builds(copy, st.sampled_from(["HtoD", "DtoD"]), *ZEROS),
)


def at_any_time(events):
    moved = st.builds(
        lambda raw, times: {**raw, "ts": 1000 + times[0], "dur": times[1]}, events, TIMES
    )
    return st.lists(moved, max_size=15)


OFF_CPU = st.dictionaries(st.sampled_from(["", "useful", "data", "own"]), st.floats(-1e-3, 1e-3))


@given(at_any_time(OF_HOST) | at_any_time(OF_HOST | OF_DEVICE), OFF_CPU)
def test_the_categories_sum_to_the_window(events, off_cpu):
    parts = partition_of(*events, off_cpu=off_cpu)
    assert sum(parts.seconds.values()) == pytest.approx(parts.window_s, rel=1e-9)
    assert all(seconds >= 0 for seconds in parts.seconds.values())
    assert parts.copied_s >= parts.seconds["copies"] * parts.on_device - 1e-15
