"""The result of a run as the command line prints it: thirty lines, whatever the run; and its raw
times.
"""

from itertools import pairwise
from statistics import median

import pytest
from conftest import printed
from found import finding
from recorded import report_of
from rich.table import Table
from run_reports import compared, run, variant

from gpulab.show.raw_times import markdown, raw_table
from gpulab.show.short_result import MOST_LINES, ShortResult

LONG = (
    "function",
    "raises",
    "h200/cold_start",
    "precision-h200",
    "h200/batch_size",
    "h200/dynamic_shapes",
    "h200/latency_throughput",
    "h200/roofline_walk",
    "h200/training_step",
)


def short(report, width=80):
    return printed(ShortResult(report), width).splitlines()


@pytest.mark.parametrize("name", LONG)
def test_a_run_is_said_in_thirty_lines_on_any_terminal(name, tmp_path):
    report = report_of(name, tmp_path)
    for width in (80, 120, 400):
        lines = short(report, width)
        assert len(lines) < MOST_LINES - 1  # the command adds the run file, and an empty line
        assert ("", "") not in pairwise(lines)
        assert "--verbose" in lines[-1]


def test_of_many_variants_the_baseline_the_best_and_those_that_differ_most_stay(tmp_path):
    names = [f"v{number}" for number in range(40)]
    report = run(
        *(variant(name) for name in names),
        comparisons=[
            compared(name, "v0", 1 + number / 100) for number, name in enumerate(names[1:], 1)
        ],
        best="v3",
    )
    rows = [line.split()[0] for line in short(report) if line.startswith("v")]
    assert rows == ["variant", "v0", "v3", *names[28:]]
    assert "and 26 more variants: --verbose" in short(report)


def test_three_notes_stand_and_the_others_are_counted():
    codes = ("solo_run_differs", "moves_more_bytes", "off_the_cpu", "xid")
    values = {"drift": 0.04, "share": 0.5, "change": 0.2, "ratio": 3.0, "xid": 31}
    findings = [finding(code, "first", **values) for code in codes]
    lines = short(run(variant("first"), findings=findings))
    assert len([line for line in lines if line.startswith("note: ")]) == 3
    assert any(line.startswith("1 more note, ") for line in lines)


def test_what_limits_the_baseline_and_the_best_is_there_and_why_a_run_failed_comes_first(tmp_path):
    lines = short(report_of("lesson-batched_matmul", tmp_path))
    place = lines.index("limits, and what to do")
    assert lines[place + 1].startswith("loop: launch-bound: ")
    assert any(line.startswith("bmm: ") for line in lines[place:])
    failed = short(report_of("raises", tmp_path))
    table = next(place for place, line in enumerate(failed) if line.startswith("variant"))
    assert failed.index("bad failed (check, line 13): ValueError: boom") < table


def test_of_a_function_the_parts_of_a_step_and_its_five_longest_operations_are_there(tmp_path):
    lines = short(report_of("function", tmp_path))
    assert any(line.startswith("u computing") for line in lines)
    assert len([line for line in lines if line.startswith("aten::") and "µs" in line]) == 5


def test_raw_times_are_of_every_block(tmp_path):
    report = report_of("raises", tmp_path)
    table = raw_table(report)
    heads, _, good, third = markdown(table)
    times_s = report.samples("good")
    cells = dict(zip(heads.split(" | "), good.split(" | "), strict=True))
    assert cells["blocks"] == str(len(times_s))
    assert cells["min"] == f"{1e6 * min(times_s):.0f} µs"
    assert cells["median"] == f"{1e6 * median(times_s):.0f} µs"
    assert third.startswith("| third | ")


def test_a_cell_of_markdown_is_one_line_and_ends_no_column():
    table = Table()
    table.add_column("a")
    table.add_column("b", justify="right")
    table.add_row("x | y", "1\n2")
    assert markdown(table) == ["| a | b |", "| :-- | --: |", r"| x \| y | 1 2 |"]
