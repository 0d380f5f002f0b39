"""Whole jobs as they are shown: in seconds and per cent, by cause, with the letters of the bars."""

import pytest
import recorded
from conftest import printed

from gpulab.draw import bars
from gpulab.features.goodput.job import with_from_start
from gpulab.features.goodput.view import job_goodput
from gpulab.headless.scripting import load
from gpulab.show.results import result


@pytest.fixture
def report(tmp_path):
    return with_from_start(load(recorded.run_file("h100/small_kernels", tmp_path)), 0)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_causes_and_parts_are_in_seconds_and_per_cent(report, width, ascii_only):
    text = printed(job_goodput(report), width, ascii_only=ascii_only)
    assert text.isascii() or not ascii_only
    assert max(map(len, text.splitlines())) <= width
    rows = {line.strip().split("  ")[0]: line.split() for line in text.splitlines()}
    assert rows["build"][-3:] == ["985", "us" if ascii_only else "µs", "0%"]
    assert rows["job"][-1] == "s"
    letters = {
        line[0]: line[2:].split("  ")[0]
        for line in text.splitlines()
        if line[1:2] == " " and line[0] != " "
    }
    assert letters["u"] == "computing"
    assert all(
        bars.CATEGORIES[name][0] == letter
        for letter, name in letters.items()
        if name in bars.CATEGORIES
    )
    assert "ahead after" in text
    assert "the start of the process was not timed" in text


def test_it_is_a_part_of_a_result_that_has_it(report):
    assert "a job from process start: 71,000 steps of eager" in printed(result(report))
    assert "from process start" not in printed(result(report.with_parts(from_start=None)))
