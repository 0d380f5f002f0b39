"""What a recording says beside its parts, from traces made by hand: microseconds of one window."""

import pytest
from gpulab.features.goodput.facts import facts
from traces import call, copy, document, event, kernel, loader, op

from gpulab.features.goodput.trace import read

US = 1e-6


def of(*events, steps=1, **known):
    return facts(read(document(*events)), steps, **known)


def test_a_wait_costs_what_its_gap_is_longer_than_gaps_without_one():
    made = of(
        *(kernel(start, start + 100) for start in (0, 110, 220, 500)),
        call("cudaStreamSynchronize", 230, 330),
        call("cudaDeviceSynchronize", 610, 990),  # of the window itself: nothing comes after it
    )
    assert made.synchronizations == 1
    assert made.sync_s == pytest.approx(100 * US)
    assert made.sync_idle_s == pytest.approx((180 - 10) * US)
    assert made.idle_s == pytest.approx(600 * US)


def test_copies_are_told_apart_by_memory_and_by_what_runs_beside_them():
    made = of(copy("HtoD", 0, 300), kernel(200, 400), steps=2)
    assert made.copies_s == {"host to device pinned": pytest.approx(150 * US)}
    assert made.exposed_s == {"host to device pinned": pytest.approx(100 * US)}


def test_an_optimizer_takes_from_its_first_kernel_to_its_last():
    made = of(
        event("user_annotation", "Optimizer.step#Adam.step", 100, 200),
        call("cudaLaunchKernel", 50, 55, correlation=1),
        call("cudaLaunchKernel", 110, 115, correlation=2),
        call("cudaLaunchKernel", 150, 155, correlation=3),
        kernel(60, 300, correlation=1),
        kernel(300, 340, correlation=2),
        kernel(360, 400, correlation=3),
        parameters=1,
    )
    assert made.optimizer_kernels == 2
    assert made.optimizer_s == pytest.approx(100 * US)
    assert made.parameters == 1


def test_on_a_cpu_an_optimizer_counts_operations_that_call_no_other():
    made = of(
        event("user_annotation", "Optimizer.step#Adam.step", 100, 200),
        op("add_", 110, 150),
        op("add", 120, 140),
        op("mul_", 160, 180),
        op("mm", 300, 400),
    )
    assert made.optimizer_kernels == 2
    assert made.optimizer_s == pytest.approx(70 * US)  # without what a hook does at its end


def test_optimizers_are_counted_by_class_and_a_closure_is_seen():
    first = event("user_annotation", "Optimizer.step#Adam.step", 100, 200)
    second = event("user_annotation", "Optimizer.step#LBFGS.step", 300, 400)
    backward = event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 320, 340)
    made = of(first, second, backward, steps=2)
    assert made.optimizers == {"Adam": 0.5, "LBFGS": 0.5}
    assert made.optimizer_computes
    assert not of(first, backward).optimizer_computes


def test_what_ends_the_recording_is_no_part_of_the_optimizer():
    made = of(
        event("user_annotation", "Optimizer.step#SGD.step", 900, 5000),  # the window ends at 1000
        op("add_", 910, 950),
        op("empty", 2000, 2100),
    )
    assert (made.optimizer_kernels, made.optimizer_s) == (1, pytest.approx(40 * US))


def test_launches_are_summed_by_grid_and_calls_of_compiled_code_counted():
    shape = {"grid": [2, 3, 1], "block": [32, 4, 1], "registers per thread": 40}
    made = of(
        event("kernel", "gemm", 0, 100, (0, 7), **shape),
        event("kernel", "gemm", 100, 200, (0, 7), **shape),
        event("cpu_op", "Torch-Compiled Region: 0/0", 0, 50),
        event("cpu_op", "Torch-Compiled Region: 1/0", 60, 90),
        call("cudaMalloc", 300, 340),
        steps=2,
    )
    (launch,) = made.launches
    assert (launch.blocks, launch.threads, launch.registers, launch.calls) == (6, 128, 40, 1)
    assert launch.seconds == pytest.approx(100 * US)
    assert made.compiled_regions == 1
    assert (made.allocations, made.allocation_s) == (0.5, pytest.approx(20 * US))


def test_what_is_known_besides_are_whole_numbers_and_waits_leave_out_the_longest():
    made = of(
        *(loader(start, start + length) for start, length in ((0, 100), (200, 10), (300, 30))),
        parameters=4.0,
        workers=None,
    )
    assert made.parameters == 4
    assert isinstance(made.parameters, int)
    assert (made.loads, made.load_s) == (3, pytest.approx(20 * US))


def test_a_trace_of_a_cpu_has_no_facts_of_a_device():
    made = of(op("mm", 0, 500))
    assert (made.kernels, made.idle_s, made.synchronizations, made.launches) == (0, 0, 0, [])
    assert made.workers is made.graph_breaks is None
