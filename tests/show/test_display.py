"""A report where Python shows one: printed, as a line, as HTML in a notebook; and its raw times."""

import re
from html.parser import HTMLParser
from itertools import pairwise
from statistics import median

import pytest
from hostile import EACH_RECORDING, FORGED, hostile
from recorded import report_of, run_file

from gpulab.core.readable import readable
from gpulab.core.run_file import RunFileError
from gpulab.core.text import plain
from gpulab.headless.scripting import load

TABLE = """\
batched_matmul · Batched matmul: one call for many small products.
AMD EPYC, 1 thread · batch=40 m=16 k=16 n=16

variant  time/step       ±   speedup   99 % interval  verdict
loop       92.7 µs  ±20.4%  baseline
bmm        15.8 µs  ±20.7%     5.83x    5.77 to 5.88  faster
control                       0.999x  0.988 to 1.007  no difference"""


@pytest.fixture
def lesson(tmp_path):
    return report_of("lesson-batched_matmul", tmp_path)


class Page(HTMLParser):
    """The tags of a page, and the cells of its table."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.cells = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag in ("th", "td"):
            self.cells.append("")

    def handle_data(self, text):
        if self.cells:
            self.cells[-1] += text.strip()


def test_printed_it_is_its_table_wherever_that_is(lesson, monkeypatch):
    for name, value in (("FORCE_COLOR", "1"), ("COLUMNS", "20"), ("TERM", "xterm-256color")):
        monkeypatch.setenv(name, value)
    assert str(lesson) == TABLE


def test_in_a_traceback_or_a_list_it_is_a_line(lesson, tmp_path):
    assert repr([lesson]) == "[<RunReport batched_matmul: measured, bmm 5.83x faster>]"
    function = report_of("function", tmp_path)
    assert repr(function) == "<RunReport train:step: measured, step 1.28 ms>"


def test_why_something_did_not_run_stands_above_the_table(tmp_path):
    failed = report_of("raises", tmp_path)
    assert str(failed).splitlines()[2:4] == ["bad failed (check, line 13): ValueError: boom", ""]
    assert "ValueError: boom (bad, check, line 13)" in repr(failed)
    assert "ValueError: boom" in failed._repr_html_()


def test_in_a_notebook_it_is_a_table(lesson):
    page = Page(lesson._repr_html_())
    assert "table" in page.tags
    assert [cell for cell in page.cells if cell] == re.split(r"\n|  +", TABLE.split("\n\n")[1])


def is_wrapped(before, line):
    """Return whether the first word of a line had no room on the one before."""
    return len(before) + 1 + len(line.split()[0]) > 120


@EACH_RECORDING
def test_whatever_a_run_gave_is_shown_and_no_text_in_it_forges_anything(recorded, tmp_path):
    report = report_of(recorded, tmp_path)
    assert str(report).startswith(report.scenario)
    assert "\n" not in repr(report)
    page = "</table><script>"
    forged = readable(hostile(report, text=f"\x1b[31m\u202e\ud800\n{FORGED}{page}"))
    for text in (str(forged), repr(forged), forged._repr_html_()):
        assert text == plain(text)
    for text in (repr(forged), forged._repr_html_()):
        assert not [line for line in text.splitlines() if line.startswith(FORGED)]
    for before, line in pairwise(["", *str(forged).splitlines()]):
        assert not line.startswith(FORGED) or is_wrapped(before, line)
    assert "script" not in Page(forged._repr_html_()).tags


def test_samples_are_the_blocks_of_the_run_file_in_seconds_per_step(lesson, tmp_path):
    times_s = lesson.samples("loop")
    assert len(times_s) == lesson.method.rounds
    assert median(times_s) == pytest.approx(lesson.variant("loop").time_s.value, rel=0.1)
    assert median(lesson.samples("bmm")) < median(times_s) / 4
    path = run_file("lesson-batched_matmul", tmp_path)
    report = load(path)
    path.unlink()
    with pytest.raises(RunFileError, match=r"lesson-batched_matmul\.jsonl: No such file"):
        report.samples("loop")
