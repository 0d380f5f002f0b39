"""Whether two are apart does not depend on how well it is known by how much, and words bound it."""

import re
from math import inf, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.core.statuses import Verdict
from gpulab.report.sentences import with_sentences
from gpulab.scenario import CONTROL
from gpulab.stats.comparison import Comparison, compare
from gpulab.stats.statistics import Interval
from gpulab.stats.verdicts import in_bar, shown

LEAST, LIMIT = 1.0102, 1.0099
"""Just beyond the floor, and just within it."""
wide = st.floats(1.0, 1000.0)


def comparison(low, high, name="b"):
    """Of a speedup from low to high."""
    middle = (low * high) ** 0.5
    theta = Interval(-log(middle), -log(high), -log(low), 20)
    return compare((name, "a"), theta, pairs=100, units=20)


@given(st.floats(LEAST, 1000.0), wide)
def test_an_interval_beyond_the_floor_has_a_direction_however_wide_it_is(end, times):
    faster = comparison(end, end * times)
    slower = comparison(1 / end / times, 1 / end)
    assert (faster.verdict, slower.verdict) == ("faster", "slower")
    assert shown(faster).at_least_ratio == pytest.approx(end)
    assert shown(slower).at_most_ratio == pytest.approx(1 / end)


@given(st.floats(1 / LIMIT, LIMIT), wide, wide)
def test_an_interval_that_reaches_the_floor_has_none(middle, lower, higher):
    entry = comparison(middle / lower, middle * higher)
    assert entry.verdict in ("same", "inconclusive")


@given(st.floats(0.001, 1000.0), wide, wide)
def test_a_wider_interval_never_claims_another_direction_nor_excludes_more(low, times, wider):
    narrow, wide = comparison(low, low * times), comparison(low / wider, low * times * wider)
    assert wide.verdict in (narrow.verdict, "inconclusive")
    if wide.verdict == narrow.verdict == "inconclusive":
        assert shown(wide).slower_at_most_share >= shown(narrow).slower_at_most_share
        assert shown(wide).faster_at_most_share >= shown(narrow).faster_at_most_share


@given(st.floats(0.01, 100.0), wide)
def test_what_is_said_to_be_excluded_lies_outside_of_the_interval(low, times):
    entry = comparison(low, low * times)
    if entry.verdict != "inconclusive":
        return
    words = shown(entry).words
    if found := re.search(r"beyond ([\d.,]+)(x| %)", words):
        slower = faster = said(*found.groups())
    else:
        slower = faster = inf
        kind, value, unit = re.search(r"(slower|faster)(?: than ([\d.,]+)(x| %))?$", words).groups()
        least = said(value, unit) if value else 1.0
        slower, faster = (least, inf) if kind == "slower" else (inf, least)
    assert entry.speedup.low >= 1 / slower - 1e-3
    assert entry.speedup.high <= faster + 1e-3


def said(value, unit):
    number = float(value.replace(",", ""))
    return number if unit == "x" else 1 + number / 100


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (49.0, 683.0, "faster, at least 49.0x"),
        (2.46, 8.9, "faster, at least 2.46x"),
        (1.52, 1.69, "faster"),
        (0.14, 0.55, "slower, at most 0.550x"),
        (0.90, 0.95, "slower"),
        (0.981, 1.019, "same"),
        (0.97, 1.02, "inconclusive, no difference beyond 4 %"),
        (0.97, 1.4, "inconclusive, no slower than 4 %"),
        (0.5, 1.008, "inconclusive, no faster than 1 %"),
        (1.004, 1.3, "inconclusive, not slower"),
        (0.26, 2.2, "inconclusive, no difference beyond 3.9x"),
    ],
)
def test_the_words(low, high, words):
    assert shown(comparison(low, high)).words == words


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (49.0, 683.0, "faster, at least 49.0x"),
        (1.52, 1.69, "1.60x faster"),
        (0.97, 1.02, "no difference beyond 4 %"),
    ],
)
def test_beside_a_bar_stands_the_speedup_or_else_its_bound(low, high, words):
    entry = comparison(low, high)
    assert in_bar(entry) == words
    assert len(words) <= 24


@given(st.floats(0.3, 1.0), st.floats(1.0, 3.0))
def test_a_control_that_holds_1_shows_no_difference(low, high):
    assert comparison(low, high, CONTROL).verdict == Verdict.NO_DIFFERENCE
    assert comparison(low, high).verdict in ("same", "inconclusive")


@pytest.mark.parametrize(
    "entry",
    [
        Comparison(variant="b", against="a"),
        Comparison(variant="b", against="a", verdict=Verdict.WRONG),
    ],
)
def test_without_an_interval_there_is_the_verdict_alone(entry):
    assert shown(entry).words == entry.verdict
    assert shown(entry).imprecise is False


def test_json_says_what_is_shown_beside_every_verdict():
    speedup = {"value": 180.0, "low": 49.0, "high": 683.0}
    rows = [{"verdict": "faster", "speedup": speedup}, {"verdict": None, "speedup": speedup}]
    first, second = with_sentences(rows)
    assert first["shown"] == {
        "words": "faster, at least 49.0x",
        "bound": "at least 49.0x",
        "at_least_ratio": 49.0,
        "at_most_ratio": None,
        "slower_at_most_share": None,
        "faster_at_most_share": None,
        "imprecise": True,
    }
    assert "shown" not in second
