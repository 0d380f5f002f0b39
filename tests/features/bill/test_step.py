"""The bill of a step: its rows are all of it."""

from gpulab.features.bill.step import _of_lines
from gpulab.features.goodput.events import LineTime


def test_expressions_of_a_line_are_summed():
    """Earlier runs have each expression of a line."""
    expressions = [
        LineTime(line="a.py:6", function="mask", running=running, waiting=0.1)
        for running in (0.6, 0.1)
    ]
    ran, waited = _of_lines(expressions, 2.0)
    assert ran == {("", "mask", "a.py", 6): 1.4}
    assert waited == {("waiting", "mask", "a.py", 6): 0.4}
