"""Goodput of traces made by hand: each category, their order, and that they sum to the window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import MAIN, call, copy, document, event, kernel, loader, lone_loader, mark, op

from gpulab.model.goodput import CATEGORIES, partition
from gpulab.model.trace import read

OTHER_THREAD = (1, 2)


def microseconds(*events, off_cpu=None, length=1000):
    """The seconds of a partition in microseconds, those which are not zero."""
    found = partition(read(document(*events, length=length)), off_cpu or {})
    assert sum(found.seconds.values()) == pytest.approx(found.window_s, abs=1e-15)
    assert [name for name in CATEGORIES if name in found.seconds] == list(found.seconds)
    return {name: round(1e6 * one, 3) for name, one in found.seconds.items() if round(1e6 * one, 3)}


def test_without_marks_every_kernel_is_useful():
    found = partition(read(document(kernel(100, 300), kernel(200, 400, stream=8))))
    assert (found.marked, found.on_device) == (False, True)
    assert found.goodput == pytest.approx(0.3)
    assert "preempted" not in found.seconds


def test_kernels_are_useful_by_where_they_were_launched():
    assert microseconds(
        mark("useful", 100, 200),
        mark("checking", 150, 160),
        call("cudaLaunchKernel", 110, 112, 1),
        kernel(400, 500, 1),
        call("cudaLaunchKernel", 152, 154, 2),
        kernel(500, 600, 2),
        call("cudaLaunchKernel", 250, 254, 3),
        kernel(600, 650, 3),
        kernel(650, 700),
    ) == {"useful": 100, "other busy": 200, "launch-bound": 8, "other": 692}


def test_a_backward_pass_on_a_thread_of_its_own_is_launched_in_the_mark_around_it():
    """And what that thread does while the device is idle, it does for the main thread, which waits for it."""
    backward = event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 110, 190, OTHER_THREAD)
    assert microseconds(
        mark("useful", 100, 200),
        backward,
        call("cudaLaunchKernel", 120, 130, 1, OTHER_THREAD),
        kernel(150, 300, 1),
    ) == {"useful": 150, "launch-bound": 40, "other": 810}


def test_what_other_threads_do_while_the_device_is_idle_is_not_why():
    assert microseconds(op("mm", 0, 500, OTHER_THREAD), kernel(900, 1000)) == {"useful": 100, "other": 900}


def test_communication_and_copies_count_where_nothing_else_runs():
    assert microseconds(
        kernel(0, 100),
        kernel(50, 200, name="ncclDevKernel_AllReduce_Sum"),
        copy("HtoD", 150, 300),
        copy("DtoH", 60, 90),
        copy("DtoD", 400, 420),
        copy("PtoP", 420, 430),
        event("gpu_memset", "Memset (Device)", 500, 510, (0, 7)),
    ) == {"useful": 130, "communication": 110, "copies": 100, "other": 660}


@pytest.mark.parametrize(
    ("events", "copied"),
    [
        ([copy("HtoD", 0, 100), copy("DtoH", 50, 200)], 200),
        ([copy("HtoD", 0, 100), copy("DtoH", 200, 300), kernel(0, 300)], 200),
        ([copy("HtoD", -100, 100), copy("DtoH", 900, 1100)], 200),
        ([copy("DtoD", 0, 100), copy("PtoP", 200, 300), kernel(0, 300)], 0),
        ([event("gpu_memset", "Memset (Device)", 0, 100, (0, 7))], 0),
        ([mark("copy", 0, 100), op("copy_", 0, 100)], 0),
    ],
)
def test_copies_to_and_from_the_host_whatever_runs_meanwhile(events, copied):
    assert partition(read(document(*events))).copied_s == pytest.approx(1e-6 * copied)


def test_where_something_is_marked_copies_on_the_device_are_other_work():
    found = microseconds(mark("useful", 0, 10), copy("DtoD", 400, 420), event("gpu_memset", "Memset", 500, 510, (0, 7)))
    assert found == {"other busy": 30, "other": 970}


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("cudaMalloc", "alloc"),
        ("cudaMallocAsync", "alloc"),
        ("cudaHostAlloc", "alloc"),
        ("cudaHostRegister", "alloc"),
        ("cudaFree", "alloc"),
        ("cuMemCreate", "alloc"),
        ("cudaDeviceSynchronize", "sync"),
        ("cudaStreamSynchronize", "sync"),
        ("cudaEventSynchronize", "sync"),
        ("cuStreamSynchronize", "sync"),
        ("cudaMemcpy", "sync"),
        ("cuMemcpyDtoH_v2", "sync"),
        ("cudaMemcpyAsync", "launch-bound"),
        ("cuMemcpyHtoDAsync_v2", "launch-bound"),
        ("cuMemsetD32Async", "launch-bound"),
        ("cudaLaunchKernel", "launch-bound"),
        ("cuLaunchKernelEx", "launch-bound"),
        ("cudaGraphLaunch", "launch-bound"),
    ],
)
def test_an_idle_device_by_the_call_of_the_host(name, category):
    found = microseconds(kernel(0, 100), op("mm", 50, 300), call(name, 100, 200))
    expected = {"useful": 100, "launch-bound": 100, "other": 700}
    expected[category] = expected.get(category, 0) + 100
    assert found == expected


def test_an_idle_device_in_order():
    """Allocation before data, data before sync, sync before launches: whatever the marks around them."""
    assert microseconds(
        kernel(0, 10),
        mark("data", 100, 300),
        mark("sync", 200, 400),
        call("cudaMalloc", 100, 120),
        call("cudaStreamSynchronize", 280, 320),
        op("mm", 350, 450),
        loader(500, 600),
    ) == {"useful": 10, "alloc": 20, "data wait": 280, "sync": 100, "launch-bound": 50, "other": 540}


def test_a_mark_whose_kernels_never_came_leaves_nothing_useful():
    found = partition(read(document(mark("useful", 0, 500), kernel(100, 200))))
    assert (found.marked, found.goodput) == (True, 0)


def test_a_kernel_across_the_edge_of_the_window_counts_inside_it():
    assert microseconds(kernel(-100, 100), kernel(950, 2000)) == {"useful": 150, "other": 850}


def test_a_kernel_outside_the_window_makes_no_device_run():
    assert not partition(read(document(kernel(-100, -50), kernel(1500, 2000)))).on_device


def test_cpu_without_marks_what_is_busy_is_useful():
    found = partition(read(document(op("mm", 0, 300), op("copy_", 100, 200), op("mm", 500, 900, OTHER_THREAD))))
    assert (found.marked, found.on_device) == (False, False)
    assert found.goodput == pytest.approx(0.3)


def test_cpu_each_instant_is_the_innermost_marks():
    assert microseconds(
        mark("useful", 0, 600),
        mark("data", 100, 300),
        mark("useful", 150, 200),
        mark("copy", 300, 350),
        mark("sync", 340, 420),
        mark("augment", 500, 550),
        op("mm", 500, 530),
        op("mm", 700, 750),
    ) == {"useful": 280, "other busy": 80, "copies": 40, "data wait": 150, "sync": 80, "other": 370}


def test_cpu_marks_within_themselves_count_once():
    assert microseconds(*[mark("useful", 100, 400)] * 3, mark("useful", 350, 500)) == {"useful": 400, "other": 600}


ALLOCATING = (
    op("empty", 50, 60),
    op("new_empty", 55, 70),
    mark("data", 200, 300),
    op("empty", 210, 220),
    op("resize_", 400, 410),
    op("resize_as_", 420, 430),
)


def test_cpu_allocation_within_a_mark_is_the_marks():
    found = microseconds(mark("useful", 0, 200), *ALLOCATING)
    assert found == {"useful": 200, "alloc": 20, "data wait": 100, "other": 680}


def test_cpu_allocation_is_not_useful_where_no_mark_says_so():
    found = microseconds(op("zeros", 0, 200), *ALLOCATING)
    assert found == {"useful": 180, "alloc": 40, "data wait": 100, "other": 680}


def test_cpu_a_data_loader_waits_but_for_marks_within_it():
    assert microseconds(
        loader(0, 100), mark("useful", 50, 80), mark("useful", 200, 300), loader(220, 240), op("mm", 10, 90)
    ) == {"useful": 110, "data wait": 90, "other": 800}


def test_marks_of_other_threads_and_annotations_of_others_are_none():
    other = {**mark("useful", 0, 500), "tid": 2}
    named_alike = event("user_annotation", "useful", 0, 500, MAIN)
    mirrored = event("gpu_user_annotation", "gpulab:useful", 0, 500, MAIN)
    assert not partition(read(document(other, named_alike, mirrored))).marked


STEP = (mark("useful", 0, 400), mark("data", 400, 500), mark("mine", 500, 600), op("mm", 550, 580), op("mm", 600, 650))


@pytest.mark.parametrize(
    ("off_cpu", "moved"),
    [
        ({"useful": 100}, {"useful": 100}),
        ({"useful": 9000}, {"useful": 400}),
        ({"data": 100, "copy": 10, "sync": 10}, {}),
        ({"": 300}, {"other": 300}),
        ({"": 300, "mine": 150}, {"other": 420, "other busy": 30}),
        ({"": 9000}, {"other": 420, "other busy": 80}),
        ({"": -5, "useful": -1}, {}),
    ],
)
def test_cpu_time_in_which_the_thread_did_not_run(off_cpu, moved):
    expected = {"useful": 400, "other busy": 80, "data wait": 100, "other": 420, "preempted": sum(moved.values())}
    for name, one in moved.items():
        expected[name] -= one
    found = microseconds(*STEP, off_cpu={name: 1e-6 * one for name, one in off_cpu.items()})
    assert found == {name: one for name, one in expected.items() if one}


def test_cpu_waiting_for_a_data_loader_is_not_preempted():
    events = op("mm", 0, 500), loader(500, 800)
    assert microseconds(*events, off_cpu={"": 310e-6}) == {
        "useful": 500,
        "data wait": 300,
        "other": 190,
        "preempted": 10,
    }
    assert microseconds(mark("useful", 0, 900), loader(500, 800), off_cpu={"useful": 310e-6}) == {
        "useful": 590,
        "data wait": 300,
        "other": 100,
        "preempted": 10,
    }


def test_cpu_a_loader_without_workers_runs_and_has_its_part_of_what_is_off_the_cpu():
    events = lone_loader(0, 400), op("mm", 400, 900)
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
    within = mark("useful", 0, 500), lone_loader(0, 250)
    assert microseconds(*within, off_cpu={"useful": 100e-6}) == {
        "useful": 200,
        "data wait": 250,
        "other": 500,
        "preempted": 50,
    }


def test_an_empty_window_has_no_shares():
    for found in (partition(read(document(*STEP, length=0))), partition(read(document(length=0)))):
        assert (found.window_s, found.goodput) == (0, 0)
        assert set(found.shares.values()) == {0}


def test_a_long_clock_costs_no_digits():
    """Seconds since boot in microseconds leave a nanosecond of resolution: the window is measured from its start."""
    events = document(mark("useful", 0, 500.25))
    for one in events["traceEvents"]:
        one["ts"] += 2.0**42
    assert partition(read(events)).seconds["useful"] == pytest.approx(500.25e-6, abs=1e-14)


times = st.tuples(st.floats(-200, 1200), st.floats(0, 400))
hosts = st.one_of(
    st.builds(mark, st.sampled_from(["useful", "data", "copy", "sync", "mine"]), *[st.just(0)] * 2),
    st.builds(op, st.sampled_from(["mm", "empty"]), *[st.just(0)] * 2, st.sampled_from([MAIN, OTHER_THREAD])),
    st.builds(loader, *[st.just(0)] * 2),
    st.builds(lone_loader, *[st.just(0)] * 2),
)
devices = st.one_of(
    st.builds(
        call,
        st.sampled_from(["cudaMalloc", "cudaLaunchKernel", "cudaMemcpy"]),
        *[st.just(0)] * 2,
        st.integers(1, 3),
    ),
    st.builds(kernel, *[st.just(0)] * 2, st.integers(1, 3), st.sampled_from(["gemm", "ncclKernel"])),
    st.builds(copy, st.sampled_from(["HtoD", "DtoD"]), *[st.just(0)] * 2),
)


def at_any_time(events):
    moved = st.tuples(events, times).map(lambda one: {**one[0], "ts": 1000 + one[1][0], "dur": one[1][1]})
    return st.lists(moved, max_size=15)


marks_of_off_cpu = st.dictionaries(st.sampled_from(["", "useful", "data", "mine"]), st.floats(-1e-3, 1e-3))


@given(at_any_time(hosts) | at_any_time(hosts | devices), marks_of_off_cpu)
def test_the_categories_sum_to_the_window(events, off_cpu):
    found = partition(read(document(*events)), off_cpu)
    assert sum(found.seconds.values()) == pytest.approx(found.window_s, rel=1e-9)
    assert sum(found.shares.values()) == pytest.approx(1, abs=1e-9)
    assert all(one >= 0 for one in found.seconds.values())
    assert found.copied_s >= found.seconds["copies"] * found.on_device - 1e-15
