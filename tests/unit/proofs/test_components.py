"""Components of variance: what is put in comes out, level by level."""

from math import sqrt
from random import Random
from statistics import fmean, median

import pytest
from components import block_sd, components, drawn_in, lag_1, median_noise
from variance import split_of

from gpulab.stats.series import Epoch


def nested(random, sds, counts):
    """A tree of normal effects from the top down; a leaf is a list of values."""
    if not sds:
        return 0.0
    (sd, *lower), (count, *rest) = sds, counts
    return [shifted(nested(random, lower, rest), random.gauss(0, sd)) for _ in range(count)]


def shifted(tree, by):
    return [shifted(inner, by) for inner in tree] if isinstance(tree, list) else tree + by


def test_every_level_is_recovered():
    """Of a large experiment to a few per cent, and no level takes what belongs to another."""
    sds = (0.04, 0.0, 0.02, 0.03)  # time, interpreters, processes, builds
    tree = nested(Random(1), sds, (400, 2, 6, 4))
    sds_back = [
        sqrt(max(0.0, variance)) for variance in components(tree, lambda leaf: (leaf, 0.0), 4)
    ]
    assert sds_back == pytest.approx([0.03, 0.02, 0.0, 0.04], abs=0.005)


def test_the_noise_of_the_leaves_is_taken_off():
    random = Random(2)
    tree = nested(random, (0.02, 0.02), (300, 10))
    noisy = [[value + random.gauss(0, 0.05) for value in group] for group in tree]
    builds, time = components(noisy, lambda leaf: (leaf, 0.05**2), 2)
    assert sqrt(builds) == pytest.approx(0.02, abs=0.006)
    assert sqrt(time) == pytest.approx(0.02, abs=0.004)


def test_a_level_without_two_members_is_unknown_and_costs_the_others_nothing():
    tree = [[[value] for value in group] for group in nested(Random(3), (0.03, 0.02), (300, 8))]
    inner, middle, outer = components(tree, lambda leaf: (leaf, 0.0), 3)
    assert inner is None
    assert (sqrt(middle), sqrt(outer)) == pytest.approx((0.02, 0.03), abs=0.005)


def test_groups_of_unlike_size_are_no_trouble():
    random = Random(4)
    tree = [nested(random, (0.02,), (random.randint(1, 9),)) for _ in range(400)]
    tree = [shifted(group, random.gauss(0, 0.01)) for group in tree]
    builds, time = components(tree, lambda leaf: (leaf, 0.0), 2)
    assert (sqrt(builds), sqrt(time)) == pytest.approx((0.02, 0.01), abs=0.004)


def test_block_noise_ignores_drift_and_outliers():
    random = Random(5)
    groups = [[0.001 * place + random.gauss(0, 0.02) for place in range(50)] for _ in range(100)]
    for group in groups:
        group[7] = 1.0
    assert block_sd(groups) == pytest.approx(0.02, rel=0.05)


def test_outliers_are_drawn_in_and_nothing_else_is_touched():
    random = Random(8)
    groups = [
        [shift + random.gauss(0, 0.01) for _ in range(8)]
        for shift in (0.0, 0.5, 1.0)
        for _ in range(50)
    ]
    groups[3][5] = 7.0
    groups.append([3.0])
    drawn = drawn_in(groups)
    changed = [
        (g, i)
        for g, group in enumerate(groups)
        for i, value in enumerate(group)
        if drawn[g][i] != value
    ]
    assert (3, 5) in changed
    assert len(changed) < 5
    assert drawn[3][5] < 0.1
    assert drawn[-1] == [3.0], "a group of its own has nothing to be far from"


@pytest.mark.parametrize("count", [1, 3, 5, 21])
def test_noise_of_a_median(count):
    random = Random(count)
    medians = [median(random.gauss(0, 1) for _ in range(count)) for _ in range(4000)]
    assert fmean(value**2 for value in medians) == pytest.approx(median_noise(1.0, count), rel=0.1)


def test_correlation_of_neighbours():
    random, values = Random(6), [0.0]
    for _ in range(20_000):
        values.append(0.7 * values[-1] + random.gauss(0, 1))
    assert lag_1([values]) == pytest.approx(0.7, abs=0.02)
    assert lag_1([[1.0, 2.0]]) is None


def test_a_split_of_epochs():
    """Rounds of a run whose processes differ, and nothing else."""
    random = Random(7)

    def epoch(ratio):
        return Epoch(
            [{"baseline": 1.0, "unlike": ratio * (1 + random.gauss(0, 0.001))} for _ in range(5)]
        )

    visits = [
        [
            [[epoch(ratio)] * 3 for ratio in (1.5 * (1 + random.gauss(0, 0.02)) for _ in range(8))]
            for _ in range(2)
        ]
        for _ in range(30)
    ]
    split = split_of(visits, ("unlike", "baseline"))
    assert split.blocks == pytest.approx(0.001, rel=0.3)
    assert split.levels["processes"] == pytest.approx(0.02, abs=0.003)
    assert split.levels["time"] < 0.005
    assert abs(split.lag_1_processes) < 0.2
    assert (split.visits, split.processes) == (30, 16)
    assert split_of([], ("unlike", "baseline")) is None
    assert split_of(visits, ("nobody", "baseline")) is None
