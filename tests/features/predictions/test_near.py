"""A prediction is near within a factor of two; where the interval is wider, nobody can tell."""

import pytest

from gpulab.core.estimate import Estimate
from gpulab.features.predictions.report import near


@pytest.mark.parametrize(
    ("predicted", "low", "high", "is_near"),
    [
        (3.0, 2.9, 15.0, None),
        (7.0, 2.9, 15.0, None),
        (100.0, 2.9, 15.0, False),
        (4.0, 6.0, 8.0, True),
        (3.0, 6.0, 8.0, False),
    ],
)
def test_a_prediction_is_judged_by_one_rule(predicted, low, high, is_near):
    assert near(predicted, Estimate(value=7.12, low=low, high=high)) is is_near
