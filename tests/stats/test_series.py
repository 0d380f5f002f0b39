"""Epochs and their series: what an epoch loses to a window, and that settled and unsettled values
give the same.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.stats.series import Epoch, EpochSeries, Series, Window
from gpulab.stats.statistics import correlated_interval, median

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
    ("start", "end", "blocks"),
    [(1, 2, 3), (0.5, 1.5, 2), (4, 9, 4), (-1, 0, 4), (0, 4, 0), (1.9, 2.1, 2)],
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
EPOCHS_OF_VALUES = st.lists(st.tuples(st.integers(0, 1), VALUES), max_size=40)


def numbered(epochs):
    """Epochs with the numbers of their processes; (1, values) begins a new one."""
    process, result = 0, []
    for begins, values in epochs:
        process += begins
        result.append((process, values))
    return result


def series_of(epochs):
    series = Series()
    for process, values in epochs:
        series.add(process, values)
    return series


@given(EPOCHS_OF_VALUES.map(numbered), st.integers(0, 40))
def test_unsettled_values_count_as_if_they_were_settled(epochs, settled):
    whole, part = series_of(epochs), series_of(epochs[:settled])
    assert part.processes(epochs[settled:]) == whole.processes()
    assert part.interval(epochs[settled:]) == whole.interval()
    assert part.rough(epochs[settled:]) == whole.rough()
    for process, values in epochs[settled:]:
        part.add(process, values)
    assert part.interval() == whole.interval()


@given(EPOCHS_OF_VALUES.map(numbered))
def test_the_interval_is_over_one_value_of_each_process_in_their_order(epochs):
    medians = {}
    for process, values in epochs:
        if values:
            medians.setdefault(process, []).append(median(values))
    series = series_of(epochs)
    assert series.processes() == [median(of_epochs) for of_epochs in medians.values()]
    assert series.interval() == correlated_interval(series.processes())


@given(st.lists(VALUES, max_size=20))
def test_where_processes_were_not_recorded_each_epoch_counts_as_one(values):
    series = series_of((None, epoch) for epoch in values)
    assert series.processes() == [median(epoch) for epoch in values if epoch]


def test_of_a_process_that_has_ended_one_value_is_kept():
    series = series_of((process, [1.0, 2.0, 3.0]) for process in range(100) for _ in range(8))
    assert (series.count, len(series.medians), len(series._epochs)) == (2400, 99, 8)
    assert Series().rough() is None


def test_a_series_of_every_key_and_of_no_other():
    series = EpochSeries([("a",), ("b", "a")])
    series.add(EPOCH)
    assert list(series) == [("a",), ("b", "a")]
    assert (series.epochs, series["a",].count, series["b", "a"].count) == (1, 2, 2)
    with pytest.raises(KeyError):
        series["b",]
