"""What ran in a trace by name: self times, shapes, and counts to compare recordings by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import OTHER_THREAD, copy, document, kernel, op

from gpulab.features.goodput.analysis import call_counts, operations
from gpulab.features.goodput.trace import read
from gpulab.stats.time_spans import measure, union


def rows(*events, most=40):
    table = operations(read(document(*events)), most)
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
    assert table == [("gemm", "", 2, 200), ("Memcpy HtoD (Pinned -> Device)", "", 1, 10)]


def test_the_rest_of_a_long_table_is_one_row_that_counts_its_rows():
    events = op("a", 0, 100), op("b", 100, 150), op("c", 150, 160), op("d", 160, 169)
    assert rows(*events, most=2) == [
        ("aten::a", "", 1, 100),
        ("aten::b", "", 1, 50),
        ("...", "", 2, 19),
    ]
    assert [row.rows for row in operations(read(document(*events)), 2)] == [1, 1, 2]


def test_nothing_ran():
    assert operations(read(document())) == []
    assert operations(read(document(op("mm", 0, 1), length=0))) == []


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
    assert sum(row.calls for row in table) == len(spans)
