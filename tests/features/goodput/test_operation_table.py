"""The full table of operations: columns that fit, sorted by any of them, summed by who called; and
the operations below the roofs.
"""

from itertools import pairwise

import pytest
from conftest import printed
from recorded import run_of_a_transformer
from run_reports import profiled

from gpulab.core.payloads import REST
from gpulab.core.statuses import GroupBy, SortBy
from gpulab.features.goodput.events import Operation
from gpulab.features.goodput.operation_table import (
    OperationTable,
    TableChoice,
    rows_of,
    sorted_rows,
)
from gpulab.features.goodput.operations import full_tables
from gpulab.features.roofline.report import roofline_of_operations
from gpulab.features.roofline.view import roofline_view
from gpulab.headless.scripting import load


def row(name, self_ms, total_ms=None, **fields):
    values = {"calls": 2.0, "share": self_ms / 10, "shapes": "", "on_device": False, **fields}
    total_s = 1e-3 * (self_ms if total_ms is None else total_ms)
    return Operation(name=name, self_s=1e-3 * self_ms, total_s=total_s, **values)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return load(run_of_a_transformer(tmp_path_factory.mktemp("transformer")))


ROWS = [
    row("aten::addmm", 4, 5, line="train.py:3", module="Net.0", flops=8e6, bytes=1e6, dtype="fp32"),
    row("aten::addmm", 2, 2, line="train.py:9", module="Net.1", flops=4e6, bytes=5e5, dtype="fp32"),
    row("aten::cat", 1, 1, line="train.py:3", module="Net", memory_bytes=-4096),
    row("aten::linear", 0.5, 6, line="train.py:3", module="Net.0"),
    row(REST, 3, 3, rows=7),
]


def of(rows, **choice):
    report = profiled(("step", {"operations": rows, "step_s": 1e-2}))
    (variant,) = report.variants
    return OperationTable(variant, TableChoice(**choice), "operations")


def lines(table, width=80):
    return [line.split() for line in printed(table, width).splitlines()]


def names(rows, **choice):
    table = of(rows, **choice)
    shown = sorted_rows(rows_of(table.variant, table.choice.group), table.choice)
    return [row.label for row in shown]


def test_calls_of_several_lines_are_one_operation_and_the_rest_stays_last():
    head, first, *_ = lines(of(ROWS), 160)
    assert head[:6] == ["operations", "calls", "self", "↓", "total", "share"]
    assert first[:6] == ["aten::addmm", "4", "6.00", "ms", "7.00", "ms"]
    assert names(ROWS) == ["aten::addmm", "aten::cat", "aten::linear", "..."]
    assert names(ROWS, sort=SortBy.TOTAL) == ["aten::addmm", "aten::linear", "aten::cat", "..."]
    assert names(ROWS, sort=SortBy.NAME) == ["aten::addmm", "aten::cat", "aten::linear", "..."]


@pytest.mark.parametrize("sort", SortBy)
def test_every_column_can_be_sorted_by_and_then_has_room(sort, report):
    (variant, *_) = [variant for variant in report.variants if variant.goodput]
    table = OperationTable(variant, TableChoice(most=5, sort=sort), "operations")
    for width in (60, 80, 200):
        text = printed(table, width)
        assert max(map(len, text.splitlines()[:6])) <= width
        if sort not in (SortBy.NAME, SortBy.MEMORY):  # which this recording does not have
            assert "↓" in text.splitlines()[0], width


def test_lines_sum_what_they_call_and_modules_what_is_within_them():
    by_line = of(ROWS, group=GroupBy.LINE)
    figures = {row.label: row.operation for row in rows_of(by_line.variant, GroupBy.LINE)}
    assert figures["train.py:3"].total_s == pytest.approx(5.5e-3)  # linear holds addmm
    assert figures["train.py:3"].flops == 8e6
    assert names(ROWS, group=GroupBy.LINE)[0] == "train.py:3"
    modules = {row.label: row.operation for row in rows_of(by_line.variant, GroupBy.MODULE)}
    assert modules["Net"].total_s == pytest.approx(7.5e-3)
    assert modules["Net"].self_s == pytest.approx(1e-3)
    assert modules["Net.0"].total_s == pytest.approx(4.5e-3)
    assert names(ROWS, group=GroupBy.MODULE)[:2] == ["Net", "Net.0"]


def test_kernels_and_what_launched_them(report):
    (table, *_) = full_tables(report, TableChoice(most=3, group=GroupBy.KERNEL))
    text = printed(table, 100)
    assert "launched by" in text.splitlines()[0]
    assert "aten::mm" in text


def test_what_has_no_formula_says_so_and_what_was_derived_too():
    text = printed(of(ROWS), 160)
    assert "no formula for FLOPs and bytes: aten::cat" in text
    assert "aten::linear" not in text.split("no formula")[1]  # what is within it has one
    assert "derived from shapes and types, not counted" in text


def test_a_kernel_of_no_operation_is_a_row_beside_the_operations():
    alone = Operation(name="my_kernel", calls=1, self_s=2e-3, share=0.2, shapes="", on_device=True)
    mine = Operation(
        name="gemm",
        calls=1,
        self_s=1e-3,
        share=0.1,
        shapes="",
        on_device=True,
        launched_by="aten::mm",
    )
    launching = row("aten::mm", 1, device_s=1e-3, device_total_s=1e-3)
    assert names([alone, mine, launching]) == ["my_kernel", "aten::mm"]


def test_without_any_of_a_grouping_the_table_says_so():
    assert "no kernel of a device was recorded" in printed(of(ROWS, group=GroupBy.KERNEL))


def test_operations_lie_below_the_roofs_of_their_device(report):
    name = next(variant.name for variant in report.variants if variant.operation_points)
    points = report.variant(name).operation_points
    addmm = points[0]
    assert (addmm.variant, addmm.dtype) == ("aten::addmm", "fp32")
    assert addmm.rate == pytest.approx(addmm.flops / addmm.seconds)
    assert addmm.intensity == pytest.approx(addmm.flops / addmm.bytes)
    assert 0.7 < addmm.fraction < 1.05
    assert all(point.seconds >= after.seconds for point, after in pairwise(points))
    roofline = roofline_of_operations(report, name)
    text = printed(roofline_view(roofline, width=80, height=24))
    assert "A addmm" in text
    assert "operation" in text


def test_the_shares_of_the_roof_stand_in_the_table_too(report):
    (table, *_) = full_tables(report, TableChoice(most=1))
    head, first, *_ = printed(table, 200).splitlines()
    assert "of roof" in head
    assert "%" in first.split("T")[-1]
