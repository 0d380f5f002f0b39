"""Parts of a step without the profiler: they sum to the step, and what can be trusted keeps its
seconds.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from partitions import partition_of, shares
from traces import op, phase

from gpulab.core.payloads import BUSY, CATEGORIES
from gpulab.features.goodput.analysis import (
    is_disturbed,
    parts_on_cpu,
    parts_on_device,
    taken_by_others_s,
)
from gpulab.features.goodput.events import Partition

SECONDS = st.floats(0, 1e-2)
STEP_S = st.floats(1e-6, 1e-1)
STEPS = st.integers(1, 200)


def partitions(categories=CATEGORIES, on_device=False):
    """Any seconds by category; of a CPU with any places for what recording takes."""

    def made(seconds, weights):
        total = sum(weights)
        beside = (
            {name: weight / total for name, weight in zip(categories, weights, strict=True)}
            if total
            else {}
        )
        return Partition(
            window_s=sum(seconds),
            seconds=dict(zip(categories, seconds, strict=True)),
            marked=True,
            on_device=on_device,
            around={} if on_device else beside,
        )

    lists = [
        st.lists(values, min_size=len(categories), max_size=len(categories))
        for values in (SECONDS, st.floats(0, 1))
    ]
    return st.builds(made, *lists)


@given(partitions(CATEGORIES[:-1], on_device=True), STEPS, STEP_S)
def test_parts_of_a_device_sum_to_the_step_and_what_is_busy_keeps_its_seconds_while_they_fit(
    partition, steps, step_s
):
    parts = parts_on_device(partition, steps, step_s)
    assert sum(parts.values()) == pytest.approx(step_s)
    assert all(seconds >= 0 for seconds in parts.values())
    busy_s = sum(partition.seconds[name] for name in BUSY) / steps
    if busy_s <= step_s:
        assert all(parts[name] == partition.seconds[name] / steps for name in BUSY)
    else:
        assert parts["useful"] == min(step_s, partition.seconds["useful"] / steps)
    for name in set(parts) - {*BUSY, "other"}:
        # no idle part becomes longer than it was recorded
        assert parts[name] <= partition.seconds[name] / steps


@given(partitions(), STEPS, STEP_S, STEP_S)
def test_parts_of_a_cpu_sum_to_the_step(partition, steps, plain_s, step_s):
    parts = parts_on_cpu(partition, steps, plain_s, step_s)
    assert sum(parts.values()) == pytest.approx(step_s)
    assert all(seconds >= 0 for seconds in parts.values())


@given(partitions(), STEPS, STEP_S)
def test_without_an_overhead_a_cpu_keeps_its_shares(partition, steps, step_s):
    plain_s = partition.window_s / steps
    if plain_s > 1e-9:
        parts = parts_on_cpu(partition, steps, plain_s, step_s)
        assert {name: seconds / step_s for name, seconds in parts.items()} == pytest.approx(
            shares(partition), abs=1e-6
        )


def test_what_recording_takes_is_subtracted_where_operations_begin():
    """Two operations of 100 us with one inside each; the profiler added 40 us to 160 us of
    steps.
    """
    nested = (op("a", 0, 100), op("b", 10, 90), op("a", 100, 180), op("b", 110, 170))
    partition = partition_of(*nested, length=200)
    assert partition.around == pytest.approx({"useful": 1.0})
    parts = parts_on_cpu(partition, 1, 160e-6, 160e-6)
    assert parts["useful"] == pytest.approx(140e-6)
    apart = (op("a", 10, 50), op("a", 60, 100), op("a", 110, 150))
    partition = partition_of(*apart, length=200)
    assert partition.around == pytest.approx({"other": 1.0})
    assert parts_on_cpu(partition, 1, 160e-6, 1.0)["useful"] == pytest.approx(120 / 160)


def test_a_phase_costs_as_much_as_several_operations():
    partition = partition_of(phase("useful", 20, 100), op("a", 50, 100), op("a", 200, 300))
    assert partition.around["other"] == pytest.approx(11 / 12)
    assert partition.around["useful"] == pytest.approx(1 / 12)


def test_what_others_took_of_the_window_is_no_part_of_the_step():
    busy = op("a", 0, 500)
    partition = partition_of(busy, off_cpu={"": 600e-6})
    assert partition.seconds["preempted"] == pytest.approx(600e-6)
    # a wait that no phase names is no work
    assert partition.seconds["useful"] == pytest.approx(400e-6)
    taken = partition_of(busy, off_cpu={"": 600e-6}, taken_s=600e-6)
    assert taken.seconds["useful"] == taken.seconds["other"] == pytest.approx(200e-6)
    assert is_disturbed(taken, 1, 400e-6)
    assert taken_by_others_s(taken, 1, 400e-6) == pytest.approx(600e-6)
    assert parts_on_cpu(taken, 1, 400e-6, 1.0) == pytest.approx(
        {**dict.fromkeys(taken.seconds, 0), "useful": 0.5, "other": 0.5}
    )
    assert not is_disturbed(partition, 1, 1000e-6)
    assert parts_on_cpu(partition, 1, 1000e-6, 1.0)["preempted"] == pytest.approx(0.6)
