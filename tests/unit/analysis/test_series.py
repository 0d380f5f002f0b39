"""Epochs and their series: what an epoch loses to a window, and that settled and unsettled values give the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.analysis.series import Epoch, EpochSeries, Series, Window
from gpulab.analysis.statistics import FEWEST, median, median_interval

ROUNDS = ({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 4.0})
SPANS = ({"a": (0, 1), "b": (1, 2)}, {"a": (2, 3), "b": (3, 4)})
EPOCH = Epoch(ROUNDS, SPANS)


def window(start, end, name=""):
    return Window(start, end, "clocks_slowed", (name,))


def test_an_epoch_keeps_the_blocks_that_touch_no_window():
    assert EPOCH.outside([window(5, 6)]) is EPOCH
    part = EPOCH.outside([window(2.5, 2.7), window(5, 6)])
    assert list(part.rounds) == [{"a": 1.0, "b": 2.0}, {"b": 4.0}]
    assert (part.blocks, EPOCH.blocks, EPOCH.end) == (3, 4, 4)
    assert part.values(("b",)) == [2.0, 4.0]
    assert part.values(("b", "a")) == [pytest.approx(0.6931, abs=1e-4)]
    assert part.values(("c",)) == []


@pytest.mark.parametrize(
    ("start", "end", "blocks"), [(1, 2, 3), (0.5, 1.5, 2), (4, 9, 4), (-1, 0, 4), (0, 4, 0), (1.9, 2.1, 2)]
)
def test_a_block_that_only_shares_an_instant_with_a_window_stays(start, end, blocks):
    assert EPOCH.outside([window(start, end)]).blocks == blocks


def test_windows_between_the_blocks_of_an_epoch_overlap_it_and_drop_nothing():
    apart = Epoch(ROUNDS, ({"a": (0, 1), "b": (1, 2)}, {"a": (6, 7), "b": (7, 8)}))
    between, before, behind = window(3, 5), window(-2, 0), window(8, 9)
    assert apart.overlapping([before, between, behind]) == [between]
    assert apart.outside([before, between, behind]) is apart
    assert apart.outside([between, window(4, 6.5, "other"), window(1.5, 1.6)]).blocks == 2


def test_without_times_of_blocks_nothing_is_dropped():
    assert Epoch(ROUNDS).outside([window(0, 100)]).blocks == 4
    assert Epoch(()).end == 0.0


VALUES = st.lists(st.floats(1e-6, 1e3), max_size=6)
EPOCHS_OF_VALUES = st.lists(VALUES, max_size=20)


@settings(deadline=None)
@given(EPOCHS_OF_VALUES, st.integers(0, 20), st.booleans())
def test_unsettled_values_count_as_if_they_were_settled(values, settled, expensive):
    whole, part = Series(), Series()
    for epoch in values:
        whole.add(epoch)
    for epoch in values[:settled]:
        part.add(epoch)
    expected = whole.interval(expensive=expensive)
    assert part.interval(values[settled:], expensive=expensive) == expected
    for epoch in values[settled:]:
        part.add(epoch)
    assert part.interval(expensive=expensive) == expected


@settings(deadline=None)
@given(EPOCHS_OF_VALUES, st.booleans())
def test_the_interval_is_over_epoch_medians_or_over_all_values_of_expensive_builds(values, expensive):
    series = Series()
    for epoch in values:
        series.add(epoch)
    epochs = [epoch for epoch in values if epoch]
    over = [value for epoch in epochs for value in epoch]
    if not expensive or len(epochs) >= FEWEST:
        over = [median(epoch) for epoch in epochs]
    assert series.interval(expensive=expensive) == median_interval(over)


def test_all_values_are_dropped_once_medians_are_enough():
    series = Series()
    for _ in range(FEWEST - 1):
        series.add([1.0, 2.0, 3.0])
    assert series.rough([[9.0] * 100]) == 9.0
    assert series.rough() == 2.0
    series.add([1.0, 2.0, 3.0])
    assert (series.count, len(series.medians), len(series._pool)) == (3 * FEWEST, FEWEST, 0)
    assert series.rough() == 2.0
    assert Series().rough() is None


def test_a_series_of_every_key_and_of_no_other():
    series = EpochSeries([("a",), ("b", "a")])
    series.add(EPOCH)
    assert list(series) == [("a",), ("b", "a")]
    assert (series.epochs, series["a",].count, series["b", "a"].count) == (1, 2, 2)
    with pytest.raises(KeyError):
        series["b",]
