"""The ceilings of a device: names are never cut, columns go instead, and what is unsteady is
said.
"""

import pytest
from conftest import printed
from devices import H200
from found import finding
from recorded import report_of
from rooflines import ceiling
from run_reports import CPU, run

from gpulab.core.statuses import Conclusion
from gpulab.features.roofline.ceilings import nominal_ceilings
from gpulab.features.roofline.ceilings_view import CeilingTable, amount, ceilings
from gpulab.features.roofline.events import Ceiling, CeilingsMeasured

MEASURED = Ceiling(
    roof="host to device",
    kind="pinned on the spot 256 MiB",
    unit="B/s",
    best=55e9,
    median=52e9,
    spread=0.021,
    samples=9,
    method=finding("pinned_for_one_copy"),
    sm_mhz=1980.0,
)
LONG = (MEASURED, ceiling("device memory", "triad", 4.4e12, unit="B/s"), *nominal_ceilings(H200))


def table_of(rows, width=80):
    return [line.rstrip() for line in printed(CeilingTable(rows), width).splitlines()]


def names_in(lines, rows):
    """The names of the ceilings that begin a line of their own, in the order of the rows."""
    return [
        row.name
        for row, line in zip(rows, lines[1:], strict=True)
        if line.startswith(f"{row.name} ")
    ]


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_no_name_is_cut_or_folded_and_no_line_too_wide(width, tmp_path):
    recorded = report_of("calibration", tmp_path).ceilings.ceilings
    for rows in (LONG, recorded):
        lines = table_of(rows, width)
        if "method" not in lines[0]:
            assert names_in(lines, rows) == [row.name for row in rows]
        assert max(map(len, lines)) <= width
        text = "\n".join(lines)
        assert all(row.name in text and amount(row, row.best) in text for row in rows)
        assert "…" not in text


def test_columns_go_in_turn_where_the_width_does_not_hold_them():
    heads = [table_of([MEASURED], width)[0].split() for width in (200, 100, 84, 78, 64)]
    assert heads == [
        ["ceiling", "best", "median", "spread", "source", "SM", "MHz", "method"],
        ["ceiling", "best", "median", "spread", "source", "SM", "MHz"],
        ["ceiling", "best", "median", "spread", "source"],
        ["ceiling", "best", "spread", "source"],
        ["ceiling", "best", "source"],
    ]


def test_each_row_says_how_its_ceiling_is_known():
    lines = [" ".join(line.split()) for line in table_of(LONG, 200)]
    copied = "host to device pinned on the spot 256 MiB 55.0 GB/s 52.0 GB/s 2.1% measured 1,980"
    assert lines[1] == f"{copied} page-locked for this one copy"
    assert "device memory 4.80 TB/s datasheet datasheet of NVIDIA H200" in lines
    assert "cache 16.7 TB/s derived 132 SMs x 64 B x 1980 MHz" in lines


def test_an_unsteady_ceiling_has_the_ratio_of_its_best_to_its_median():
    unsteady = Ceiling(roof="cache", kind="read", unit="B/s", best=90e9, median=30e9, samples=9)
    assert "unsteady 3.00x" in table_of([unsteady])[1]
    slow = Ceiling(roof="launch", kind="enqueue", unit="s", best=2e-6, median=4e-6, samples=9)
    assert table_of([slow])[1].split()[:4] == ["launch", "enqueue", "2.00", "µs"]


def test_a_report_of_ceilings_has_its_device_its_time_and_its_notes():
    report = run(
        device=CPU,
        ceilings=CeilingsMeasured(at="2026-11-20T00:00:00+00:00", ceilings=[MEASURED]),
        findings=[finding("ceilings_not_used", ceilings=["cache read"], times=1.5)],
    )
    lines = [line.rstrip() for line in printed(ceilings(report), 200).splitlines()]
    assert lines[0] == "AMD EPYC, 1 thread"
    assert "measured at 2026-11-20T00:00:00+00:00 (UTC)" in lines
    assert lines[-1].startswith(
        "note: not used as ceilings: cache read: their best is over 1.5x their median"
    )


def test_a_calibration_that_failed_says_why():
    reason = finding("exception", message="RuntimeError: no CUDA", stage="load", line=None)
    text = printed(ceilings(run(device=H200, reason=reason, outcome=Conclusion.FAILED)))
    assert text.splitlines()[0].rstrip() == "NVIDIA H200"
    assert "failed: RuntimeError: no CUDA (load)" in text
