"""The bill of a step: its rows are all of it."""

from gpulab.features.bill.step import _of_lines
from gpulab.features.goodput.events import LineTime


def test_expressions_of_a_line_are_summed():
    expressions = [
        LineTime(line="a.py:6", function="mask", source=source, running=running, waiting=0.1)
        for source, running in (("[1.0 for j in range(n)]", 0.6), ("range(n)", 0.1))
    ]
    ran, waited = _of_lines(expressions, 2.0)
    assert ran == {("", "mask", "a.py", 6): 1.4}
    assert waited == {("waiting", "mask", "a.py", 6): 0.4}
