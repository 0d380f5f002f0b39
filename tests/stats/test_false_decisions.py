"""Looking after every process from the eighth on decides no run in which nothing differs."""

import random
from math import log, sqrt

import pytest

from gpulab.core.statuses import Verdict
from gpulab.stats.comparison import (
    DECIDED_OF_EFFECT,
    LATER_OF_EFFECT,
    are_decided,
)
from gpulab.stats.statistics import FEWEST, correlated_interval
from gpulab.stats.verdicts import IMPRECISE, verdict_of

MOST_PROCESSES, PLANNED, RUNS = 24, 16, 150
ALLOWED = 0.005
SPREADS = (0.005, 0.02, 0.1, 0.3)


def independent(draw, spread):
    return [draw.gauss(0.0, spread) for _ in range(MOST_PROCESSES)]


def heavy_tailed(draw, spread):
    """Student's t with two degrees of freedom."""
    return [
        draw.gauss(0.0, spread) / sqrt(draw.gammavariate(1.0, 1.0)) for _ in range(MOST_PROCESSES)
    ]


def correlated(draw, spread):
    """Each by 0.5 with the one before."""
    values = [draw.gauss(0.0, spread)]
    while len(values) < MOST_PROCESSES:
        values.append(0.5 * values[-1] + draw.gauss(0.0, spread * sqrt(0.75)))
    return values


def decides_falsely(values, control):
    """Whether a run with these medians is ended as decided, with a variant that is faster or
    slower.
    """
    for count in range(FEWEST, MOST_PROCESSES + 1):
        theta = correlated_interval(values[:count])
        of_effect = DECIDED_OF_EFFECT if count < PLANNED else LATER_OF_EFFECT
        if are_decided([correlated_interval(control[:count]), theta], of_effect):
            return verdict_of(theta) in (Verdict.FASTER, Verdict.SLOWER)
    return False


@pytest.mark.parametrize("medians", [independent, heavy_tailed, correlated])
def test_identical_code_is_not_decided_to_differ(medians):
    draw = random.Random(1)
    false = sum(
        decides_falsely(medians(draw, spread), medians(draw, spread))
        for spread in SPREADS
        for _ in range(RUNS)
    )
    assert false <= ALLOWED * len(SPREADS) * RUNS


def test_a_difference_that_no_interval_leaves_room_for_is_decided_and_a_smaller_effect_is_not():
    draw = random.Random(1)
    control, same, slower = (
        [spread * draw.uniform(-1, 1) for _ in range(8)] for spread in (0.01, 0.04, 0.04)
    )
    slower = [value + 0.05 for value in slower]
    assert are_decided([correlated_interval(control), correlated_interval(same)])
    assert not are_decided([correlated_interval(control), correlated_interval(slower)])
    assert not are_decided(
        [correlated_interval(control), correlated_interval(same), correlated_interval(slower)]
    )


def test_an_effect_that_stands_out_is_decided_by_eight_processes():
    draw = random.Random(1)
    values = [theta - 3.0 for theta in independent(draw, 0.05)]
    assert are_decided(
        [correlated_interval(independent(draw, 0.05)[:8]), correlated_interval(values[:8])]
    )


def test_what_is_decided_has_a_verdict():
    draw = random.Random(1)
    wide = [theta - 3.7 for theta in independent(draw, 0.6)[:16]]
    control, theta = correlated_interval(independent(draw, 0.05)[:16]), correlated_interval(wide)
    assert theta.high - theta.low > log(IMPRECISE)
    assert not are_decided([control, theta], LATER_OF_EFFECT)
