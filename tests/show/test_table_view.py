"""The table of a run: the same columns while it runs and when it has ended; nothing is claimed that
was refused.
"""

import pytest
from conftest import printed
from found import finding
from run_reports import compared, run, two_variants, variant

from gpulab.core.statuses import Conclusion, Status, Verdict
from gpulab.report.report import Time
from gpulab.show.view import comparison_table
from gpulab.stats.comparison import Comparison


def rows_of(report, width=120):
    """The words of each row by the first of them."""
    lines = [line.rstrip() for line in printed(comparison_table(report), width).splitlines()]
    return {line.split()[0]: " ".join(line.split()[1:]) for line in lines}


def test_a_row_a_variant_and_the_control():
    control = Comparison(
        variant="control", against="", speedup=1.001, low=0.99, high=1.01, verdict=Verdict.SAME
    )
    rows = rows_of(two_variants(control=control))
    assert rows["variant"] == "time/step ± speedup 99 % interval verdict"
    assert rows["old"] == "1.00 ms ±1.0% baseline"
    assert rows["new"] == "1.00 ms ±1.0% 1.50x 1.425 to 1.575 faster"
    assert rows["control"] == "1.001x 0.990 to 1.010 same"


def test_a_further_comparison_has_a_row_of_its_own():
    ladder = run(
        variant("a"),
        variant("b"),
        variant("c"),
        comparisons=[compared("c", "a", 2.0), compared("c", "b", 0.5)],
    )
    rows = rows_of(ladder)
    assert rows["c"].endswith("2.00x 1.900 to 2.10 faster")
    assert rows["vs"].startswith("b 0.50x")


@pytest.mark.parametrize(
    "status", [Status.FAILED, Status.WRONG, Status.INVALID, Status.SKIPPED, Status.OUT_OF_MEMORY]
)
def test_what_came_to_nothing_has_its_status_and_no_numbers(status):
    refused = compared("new", "old", None, Verdict.WRONG)
    rows = rows_of(
        run(variant("old"), variant("new", status=status, time_s=None), comparisons=[refused])
    )
    assert rows["new"] == status


def test_an_invalid_comparison_claims_no_speedup():
    refused = compared("new", "old", None, Verdict.INVALID, reason=finding("control_differs"))
    assert (
        rows_of(run(variant("old"), variant("new"), comparisons=[refused]))["new"]
        == "1.00 ms ±1.0% invalid"
    )


def test_an_unchecked_variant_keeps_its_speedup():
    rows = rows_of(two_variants(comparisons=[compared(verdict=Verdict.UNCHECKED)]))
    assert rows["new"].endswith("1.50x 1.425 to 1.575 unchecked")


def test_under_way_verdicts_are_so_far_and_numbers_come_in_without_a_jump():
    blank = compared("new", "old", None, Verdict.INCONCLUSIVE)
    pending = [variant("old"), variant("new", status=Status.PENDING, time_s=None)]
    before = printed(
        comparison_table(run(*pending, comparisons=[blank], outcome=Conclusion.UNDER_WAY))
    )
    after = printed(comparison_table(two_variants(outcome=Conclusion.UNDER_WAY)))
    assert before.splitlines()[0] == after.splitlines()[0]
    assert "so far" in before
    assert before.splitlines()[2].split() == ["new"]


def test_times_are_of_an_item_where_that_is_compared():
    rows = rows_of(run(variant("old", time_s=Time(median=2e-3), items=4.0), per="item"))
    assert rows["variant"].startswith("time/item")
    assert rows["old"].startswith("500 µs")


def test_a_time_whose_interval_is_wider_than_itself_is_unstable():
    assert (
        "unstable"
        in rows_of(run(variant("old", time_s=Time(median=1e-3, low=0.5e-3, high=4e-3))))["old"]
    )


def test_a_long_name_is_folded_and_no_number_cut():
    name = "a_variant_with_a_name_that_is_longer_than_the_table"
    report = run(variant(name), variant("new"), comparisons=[compared("new", name)])
    lines = [line.rstrip() for line in printed(comparison_table(report), 70).splitlines()]
    assert max(map(len, lines)) <= 70
    folded_to = lines[0].index("time/step")
    assert "".join(line[:folded_to].strip() for line in lines[1:-1]) == name
    assert lines[-1].endswith("1.425 to 1.575  faster")
