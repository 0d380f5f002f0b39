"""Goodput of traces in which a device ran: each category of its time, and their order."""

import pytest
from partitions import microseconds, partition_of, shares
from traces import OTHER_THREAD, call, copy, event, kernel, loader, op, phase


def memset(start, end):
    return event("gpu_memset", "Memset (Device)", start, end, (0, 7))


def test_without_phases_every_kernel_is_useful():
    parts = partition_of(kernel(100, 300), kernel(200, 400, stream=8))
    assert (parts.marked, parts.on_device) == (False, True)
    assert shares(parts)["useful"] == pytest.approx(0.3)
    assert "preempted" not in parts.seconds


def test_kernels_are_useful_by_where_they_were_launched():
    assert microseconds(
        phase("useful", 100, 200),
        phase("checking", 150, 160),
        call("cudaLaunchKernel", 110, 112, 1),
        kernel(400, 500, 1),
        call("cudaLaunchKernel", 152, 154, 2),
        kernel(500, 600, 2),
        call("cudaLaunchKernel", 250, 254, 3),
        kernel(600, 650, 3),
        kernel(650, 700),
    ) == {"useful": 100, "other busy": 200, "launch-bound": 8, "other": 692}


def test_a_backward_pass_on_its_own_thread_is_launched_in_the_phase_around_it():
    """And what that thread does while the device is idle, it does for the main thread, which waits
    for it.
    """
    backward = event(
        "cpu_op", "autograd::engine::evaluate_function: MmBackward0", 110, 190, OTHER_THREAD
    )
    assert microseconds(
        phase("useful", 100, 200),
        backward,
        call("cudaLaunchKernel", 120, 130, 1, OTHER_THREAD),
        kernel(150, 300, 1),
    ) == {"useful": 150, "launch-bound": 40, "other": 810}


def test_an_idle_device_is_not_explained_by_what_other_threads_do():
    assert microseconds(op("mm", 0, 500, OTHER_THREAD), kernel(900, 1000)) == {
        "useful": 100,
        "other": 900,
    }


def test_communication_and_copies_count_where_nothing_else_runs():
    assert microseconds(
        kernel(0, 100),
        kernel(50, 200, name="ncclDevKernel_AllReduce_Sum"),
        copy("HtoD", 150, 300),
        copy("DtoH", 60, 90),
        copy("DtoD", 400, 420),
        copy("PtoP", 420, 430),
        memset(500, 510),
    ) == {"useful": 130, "communication": 110, "copies": 100, "other": 660}


@pytest.mark.parametrize(
    ("events", "copied"),
    [
        ([copy("HtoD", 0, 100), copy("DtoH", 200, 300), kernel(0, 300)], 200),
        ([copy("HtoD", -100, 100), copy("DtoH", 900, 1100)], 200),
        ([copy("DtoD", 0, 100), copy("PtoP", 200, 300), kernel(0, 300)], 0),
        ([phase("copy", 0, 100), op("copy_", 0, 100)], 0),
    ],
)
def test_copies_to_and_from_the_host_whatever_runs_meanwhile(events, copied):
    assert partition_of(*events).copied_s == pytest.approx(1e-6 * copied)


def test_copies_on_the_device_are_other_work_where_a_phase_is_useful():
    by_category = microseconds(phase("useful", 0, 10), copy("DtoD", 400, 420), memset(500, 510))
    assert by_category == {"other busy": 30, "other": 970}


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("cudaMalloc", "alloc"),
        ("cudaHostAlloc", "alloc"),
        ("cudaFree", "alloc"),
        ("cuMemCreate", "alloc"),
        ("cudaDeviceSynchronize", "sync"),
        ("cudaStreamSynchronize", "sync"),
        ("cudaEventSynchronize", "sync"),
        ("cudaMemcpy", "sync"),
        ("cuMemcpyDtoH_v2", "sync"),
        ("cudaMemcpyAsync", "launch-bound"),
        ("cuMemcpyHtoDAsync_v2", "launch-bound"),
        ("cuMemsetD32Async", "launch-bound"),
        ("cuLaunchKernelEx", "launch-bound"),
        ("cudaGraphLaunch", "launch-bound"),
    ],
)
def test_an_idle_device_by_the_call_of_the_host(name, category):
    by_category = microseconds(kernel(0, 100), op("mm", 50, 300), call(name, 100, 200))
    expected = {"useful": 100, "launch-bound": 100, "other": 700}
    expected[category] = expected.get(category, 0) + 100
    assert by_category == expected


def test_an_idle_device_in_order():
    """Allocation before data, data before sync, sync before launches: whatever the phases around
    them.
    """
    assert microseconds(
        kernel(0, 10),
        phase("data", 100, 300),
        phase("sync", 200, 400),
        call("cudaMalloc", 100, 120),
        call("cudaStreamSynchronize", 280, 320),
        op("mm", 350, 450),
        loader(500, 600),
    ) == {
        "useful": 10,
        "alloc": 20,
        "data wait": 280,
        "sync": 100,
        "launch-bound": 50,
        "other": 540,
    }


def test_a_useful_phase_that_launched_no_kernel_leaves_nothing_useful():
    parts = partition_of(phase("useful", 0, 500), kernel(100, 200))
    assert (parts.marked, parts.seconds["useful"]) == (True, 0)


def test_a_kernel_across_the_edge_of_the_window_counts_inside_it():
    assert microseconds(kernel(-100, 100), kernel(950, 2000)) == {"useful": 150, "other": 850}
