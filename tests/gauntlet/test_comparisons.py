"""Honest comparisons as users write them, of ways to do the same: none may be accused, and none may
fail.
"""

from pathlib import Path

import pytest
from variants import decorators

pytest_plugins = ("judged_runs",)
FILES = sorted((Path(__file__).parent / "comparisons").glob("*.py"))
QUICK = (
    "spd_solve",
    "search_sorted",
    "look_up",
    "sparse_product",
    "causal_attention",
    "copies",
    "dictionaries",
)
"""Files of which something was accused before."""


@pytest.mark.parametrize(
    "whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["smoke", "whole"]
)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.slow] * (path.stem not in QUICK), id=path.stem)
        for path in FILES
    ],
)
def test_an_honest_comparison_is_accused_of_nothing(run, path, whole):
    results = run(path, whole=whole)
    unchecked = {name for name, decorator in decorators(path).items() if "unchecked=" in decorator}
    for name, result in results.items():
        assert result.variant["status"] == "ok", result
        assert result.caught_by == set(), result
        assert (result.variant["unchecked"] is not None) == (name in unchecked), result


def test_there_are_seventy_and_more():
    assert len(FILES) >= 70
    assert sum(len(decorators(path)) for path in FILES) >= 175
