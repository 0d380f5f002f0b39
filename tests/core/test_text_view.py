"""Numbers with their units, and text that is safe to show: no escape sequence, ASCII where it must
be.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gpulab.core.estimate import Estimate
from gpulab.core.readable import readable
from gpulab.core.units import byte_count, plural, plus_minus, rate, seconds, span, times
from gpulab.draw.ascii import to_ascii


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "n/a"),
        (2.0, "2.00 s"),
        (0.0123, "12.3 ms"),
        (5.15e-5, "51.5 µs"),
        (1.23e-7, "123 ns"),
        (0.0, "0 s"),
    ],
)
def test_seconds_have_three_digits_and_the_unit_that_fits(value, text):
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "n/a"),
        (1.0012, "1.001x"),
        (0.956, "0.956x"),
        (6.284, "6.28x"),
        (0.0423, "0.042x"),
        (37.94, "37.9x"),
    ],
)
def test_speedups_near_one_have_a_digit_more(value, text):
    assert times(value) == text


def test_intervals_and_their_widths():
    assert span(1.803, 1.873) == "1.803 to 1.873"
    assert span(0.042, 12.345) == "0.042 to 12.3"
    assert span(None, 1.0) == ""
    assert plus_minus(Estimate(value=1.0, low=0.99, high=1.01)) == "±1.0%"
    assert plus_minus(Estimate(value=1.0, low=0.5, high=3.0)) == "unstable"
    assert plus_minus(Estimate(value=1.0)) == ""


def test_sizes_rates_and_counts():
    assert byte_count(64 << 20) == "64.0 MiB"
    assert byte_count(3) == "3.00 B"
    assert rate(3.96e12) == "3.96 T"
    assert rate(12.0) == "12.0"
    assert (plural(1, "thread"), plural(2, "thread")) == ("1 thread", "2 threads")


@given(st.text())
def test_what_is_shown_drives_no_terminal_and_is_ascii_where_it_must_be(text):
    shown = readable(text)
    assert not [letter for letter in shown if letter < " "]
    assert readable(shown) == shown
    assert to_ascii(shown).isascii()
    assert cell_len(to_ascii(shown)) == cell_len(shown)
