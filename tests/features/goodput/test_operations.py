"""What ran in a trace by name: self times, shapes, and counts to compare recordings by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import report_of, transformer_operations
from traces import OTHER_THREAD, call, copy, document, event, kernel, op

from gpulab.features.goodput.analysis import call_counts
from gpulab.features.goodput.operation_table import operation_table
from gpulab.features.goodput.recorded_operations import Work, operations
from gpulab.show.terminal import plain_text
from gpulab.stats.time_spans import measure, union
from gpulab.traces.trace import read


def rows(*events, most=40):
    table = operations(read(document(*events)), kernels=most, most=most)
    assert all(row.share == pytest.approx(row.self_s / 1e-3) for row in table)
    return [(row.name, row.shapes, row.calls, round(1e6 * row.self_s, 3)) for row in table]


def test_host_operations_by_name_and_shapes_without_those_inside_them():
    assert rows(
        op("linear", 0, 100, dims=[[8, 4], [4, 4], []]),
        op("mm", 20, 80, dims=[[8, 4], [4, 4]]),
        op("mm", 30, 40, OTHER_THREAD, dims=[[8, 4], [4, 4]]),
        op("cat", 200, 210, dims=[[[2, 3], [3]], []]),
        op("mm", 2000, 2100),
    ) == [
        ("aten::mm", "8x4, 4x4", 2, 70),
        ("aten::linear", "8x4, 4x4", 1, 40),
        ("aten::cat", "[2x3, 3]", 1, 10),
    ]


def test_kernels_and_copies_of_a_device():
    table = rows(
        op("mm", 0, 500), kernel(0, 100), kernel(50, 150, stream=8), copy("HtoD", 990, 1010)
    )
    assert table == [
        ("gemm", "", 2, 200),
        ("Memcpy HtoD (Pinned -> Device)", "", 1, 10),
        ("aten::mm", "", 1, 500),
    ]


def test_the_rest_of_a_long_table_is_one_row_that_counts_its_rows():
    events = op("a", 0, 100), op("b", 100, 150), op("c", 150, 160), op("d", 160, 169)
    assert rows(*events, most=2) == [
        ("aten::a", "", 1, 100),
        ("aten::b", "", 1, 50),
        ("...", "", 2, 19),
    ]
    assert [row.rows for row in operations(read(document(*events)), most=2)] == [1, 1, 2]


def host(*events):
    return {row.name: row for row in operations(read(document(*events))) if not row.on_device}


def test_kernels_belong_to_the_innermost_operation_around_their_launch_on_its_thread():
    table = host(
        op("linear", 0, 100, dims=[[8, 4]]),
        op("mm", 20, 80),
        op("mm", 0, 300, OTHER_THREAD),
        call("cudaLaunchKernel", 30, 40, 1),
        call("cudaLaunchKernel", 85, 90, 2),
        call("cudaMemcpyAsync", 150, 160, 3),
        call("cudaLaunchKernel", 200, 210, 4, OTHER_THREAD),
        kernel(300, 400, 1),
        kernel(400, 450, 2, "bias"),
        copy("HtoD", 450, 500, correlation=3),
        kernel(500, 700, 4),
        kernel(-50, -10, 1),
    )
    mm, linear = table["aten::mm"], table["aten::linear"]
    assert (mm.device_s, mm.device_total_s) == pytest.approx((3e-4, 3e-4))
    assert (linear.device_s, linear.device_total_s) == pytest.approx((5e-5, 1.5e-4))
    assert (linear.self_s, linear.total_s) == pytest.approx((4e-5, 1e-4))


def test_calls_that_launched_nothing_computed_nothing_there():
    events = (
        op("mm", 0, 50),
        op("mm", 50, 100),  # a checkpoint stopped it
        op("add_", 100, 150),  # on the host
        op("convolution", 160, 170),
        op("cudnn_convolution", 162, 168),
        op("convolution", 170, 180),  # stopped too
        call("cudaLaunchKernel", 10, 20, 1),
        call("cudaLaunchKernel", 164, 166, 2),
        kernel(200, 300, 1),
        kernel(300, 400, 2),
    )
    table = operations(read(document(*events)), work_of=lambda name, arguments: Work(8, 16))
    assert {row.name: (row.calls, row.flops) for row in table if not row.on_device} == {
        "aten::mm": (2, 8),
        "aten::add_": (1, 8),
        "aten::convolution": (2, None),
        "aten::cudnn_convolution": (1, 8),
    }


def test_a_kernel_names_the_operation_that_launched_it_most_often():
    table = operations(
        read(
            document(
                op("mm", 0, 50),
                op("addmm", 50, 100),
                *(call("cudaLaunchKernel", 10 * i, 10 * i + 5, i) for i in range(8)),
                *(kernel(100 + 10 * i, 105 + 10 * i, i) for i in range(8)),
                kernel(900, 910, 99, "alone"),
            )
        )
    )
    assert {row.name: row.launched_by for row in table if row.on_device} == {
        "gemm": "aten::mm",
        "alone": None,
    }


def test_a_real_trace_of_a_transformer_on_an_h200():
    _, table = transformer_operations()
    kernels = [row for row in table if row.on_device]
    ran = [row for row in table if not row.on_device]
    assert sum(row.device_s for row in ran) == pytest.approx(sum(row.self_s for row in kernels))
    first = ran[0]
    assert (first.name, first.shapes) == ("aten::addmm", "4096, 16384x1024, 1024x4096")
    assert first.flops == 4 * 2 * 16384 * 1024 * 4096
    rate = first.flops / first.device_s
    assert 40e12 < rate < 67e12  # of the 67 TFLOP/s in fp32 of its datasheet
    assert all(row.device_total_s >= row.device_s for row in ran)
    linear = [row for row in ran if row.name == "aten::linear"]
    assert sum(row.device_s for row in linear) == 0 < sum(row.device_total_s for row in linear)


def test_totals_of_an_operation_within_one_of_its_name_count_once():
    table = host(op("f", 0, 100), op("f", 10, 60), op("g", 60, 90), op("f", 65, 80))
    assert table["aten::f"].total_s == pytest.approx(1e-4)
    assert table["aten::f"].calls == 3
    once = host(op("f", 0, 100), op("f", 10, 60))["aten::f"]
    assert (once.calls, once.self_s, once.total_s) == pytest.approx((1, 1e-4, 1e-4))


def test_marks_name_the_line_and_the_module_of_what_is_within_them():
    marks = [
        event("cpu_op", "gpulab:at train.py:3|Net.0", 0, 100),
        event("cpu_op", "gpulab:at train.py:9|", 200, 300),
    ]
    table = host(*marks, op("mm", 10, 20), op("add", 210, 220), op("relu", 400, 410))
    assert {name: (row.line, row.module) for name, row in table.items()} == {
        "aten::mm": ("train.py:3", "Net.0"),
        "aten::add": ("train.py:9", None),
        "aten::relu": (None, None),
    }


def test_a_sample_that_does_not_fit_says_only_what_all_of_its_calls_share():
    at = "gpulab:at train.py:"
    sample = read(
        document(
            event("cpu_op", f"{at}3|", 0, 10),
            event("cpu_op", f"{at}4|", 10, 30),
            *(op("mm", start, start + 1) for start in (1, 11)),
            *(op("add", start, start + 1) for start in (21, 23)),
        )
    )

    def lines(*events):
        return {(row.name, row.line) for row in operations(read(document(*events)), sample)}

    mm = [op("mm", start, start + 1) for start in range(4)]
    add = [op("add", start, start + 1) for start in range(10, 13)]
    assert lines(*mm) == {("aten::mm", "train.py:3"), ("aten::mm", "train.py:4")}
    assert lines(*mm[:3]) == {("aten::mm", None)}
    assert lines(*add) == {("aten::add", "train.py:4")}


def test_shapes_of_an_optimizers_many_tensors_are_cut():
    (row,) = operations(read(document(op("_foreach_add_", 0, 9, dims=[[[1024, 1024]] * 1000]))))
    assert row.shapes.startswith("[1024x1024, 1024x1024, ")
    assert row.shapes.endswith(" more characters)")
    assert len(row.shapes) < 600


def test_counts_to_compare_recordings_by():
    work = (
        op("linear", 0, 100),
        op("mm", 20, 80),
        op("mm", 0, 10, OTHER_THREAD),
        op("mm", 1000, 1001),
    )
    assert call_counts(read(document(*work))) == {"aten::linear": 1, "aten::mm": 2}
    kernels = kernel(0, 1), kernel(5, 6), kernel(-9, -1)
    assert call_counts(read(document(*work, *kernels))) == {"gemm": 2}


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(0, 300)), max_size=20))
def test_self_times_sum_to_the_time_in_any_operation(spans):
    events = [
        op(f"f{i % 3}", start, min(1000, start + length)) for i, (start, length) in enumerate(spans)
    ]
    busy = measure(
        union((1e-6 * start, 1e-6 * min(1000, start + length)) for start, length in spans)
    )
    table = operations(read(document(*events)))
    assert sum(row.self_s for row in table) == pytest.approx(busy, abs=1e-12)
    assert all(row.total_s >= row.self_s for row in table)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_shares_of_the_step_are_bars_where_names_stay_readable(width, tmp_path):
    report = report_of("channels_last-h100-1", tmp_path)
    table = operation_table(report.variants[0], "operations", 5)
    head, first, *others, _ = plain_text(table, width).splitlines()
    assert "of the step" in head
    assert first.count("█") == max(row.count("█") for row in (first, *others)) >= 8
    assert max(map(len, (head, first, *others))) <= width
    assert all(len(row.partition("  ")[0]) >= 28 for row in (first,))
