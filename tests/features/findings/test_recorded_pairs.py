"""Rules on recorded runs: a planted bottleneck is the first finding, and its twin is not accused."""

from functools import cache

import pytest
from cases import PAIRS
from recorded import report_of


@pytest.fixture(scope="module")
def codes(tmp_path_factory):
    """The codes that a recorded run says of a variant, the largest share first."""
    folder = tmp_path_factory.mktemp("recorded")

    @cache
    def report(run):
        return report_of(run, folder)

    def of(case):
        return [each.finding.code for each in report(case.run).variant(case.variant).advice]

    return of


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.code} {pair.planted.run}")
def test_a_planted_bottleneck_is_the_first_finding(codes, pair):
    assert codes(pair.planted)[:1] == [pair.code]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.code} {pair.twin.run}")
def test_its_twin_is_not_accused(codes, pair):
    assert pair.code not in codes(pair.twin)
