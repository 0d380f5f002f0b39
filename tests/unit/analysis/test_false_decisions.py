"""Looking after every process from the eighth on decides no run in which nothing differs."""

import random
from math import sqrt

import pytest

from gpulab.analysis.comparison import FLOOR, are_decided, verdict_of
from gpulab.analysis.statistics import FEWEST, correlated_interval
from gpulab.protocol.statuses import Verdict

MOST_PROCESSES, RUNS = 24, 150
ALLOWED = 0.005
SPREADS = (0.005, 0.02, 0.1, 0.3)


def independent(draw, spread):
    return [draw.gauss(0.0, spread) for _ in range(MOST_PROCESSES)]


def heavy_tailed(draw, spread):
    """Student's t with two degrees of freedom."""
    return [draw.gauss(0.0, spread) / sqrt(draw.gammavariate(1.0, 1.0)) for _ in range(MOST_PROCESSES)]


def correlated(draw, spread):
    """Each by 0.5 with the one before."""
    values = [draw.gauss(0.0, spread)]
    while len(values) < MOST_PROCESSES:
        values.append(0.5 * values[-1] + draw.gauss(0.0, spread * sqrt(0.75)))
    return values


def decides_falsely(values, control):
    """Whether a run with these medians is ended as decided, with a variant that is faster or slower."""
    for count in range(FEWEST, MOST_PROCESSES + 1):
        theta = correlated_interval(values[:count])
        if are_decided(correlated_interval(control[:count]), [theta]):
            return verdict_of(theta, FLOOR) in (Verdict.FASTER, Verdict.SLOWER)
    return False


@pytest.mark.parametrize("medians", [independent, heavy_tailed, correlated])
def test_identical_code_is_not_decided_to_differ(medians):
    draw = random.Random(1)
    false = sum(
        decides_falsely(medians(draw, spread), medians(draw, spread)) for spread in SPREADS for _ in range(RUNS)
    )
    assert false <= ALLOWED * len(SPREADS) * RUNS


def test_an_effect_that_stands_out_is_decided_by_eight_processes():
    draw = random.Random(1)
    values = [theta - 3.0 for theta in independent(draw, 0.05)]
    assert are_decided(correlated_interval(independent(draw, 0.05)[:8]), [correlated_interval(values[:8])])
