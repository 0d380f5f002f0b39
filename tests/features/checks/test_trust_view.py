"""Grades in a line, and the list of checks behind them."""

import pytest
from conftest import printed
from found import finding
from recorded import report_of
from run_reports import compared, run, variant

from gpulab.core.statuses import CheckKind, CheckState, Grade
from gpulab.features.checks.report import results_of_checks
from gpulab.features.checks.view import checks, grades
from gpulab.report.report import Method
from gpulab.report.sentences import short_sentence
from gpulab.stats.comparison import Check, Trust

PASSED = [
    Check(
        kind=kind,
        state=CheckState.PASSED,
        result=results_of_checks()[kind].of(
            {"count": 4, "speedup": 1.0, "low": 0.99, "high": 1.01}
        ),
    )
    for kind in CheckKind
]


def trusted(*trusts):
    """A run that compares so many variants, each with its trust report."""
    names = [f"v{number}" for number in range(len(trusts))]
    comparisons = [compared(name, trust=trust) for name, trust in zip(names, trusts, strict=True)]
    return run(variant("old"), *map(variant, names), comparisons=comparisons)


def lines_of(report, width=80):
    return [line.rstrip() for line in printed(checks(report), width).splitlines()]


VERIFIED = Trust(grade=Grade.VERIFIED, checks=PASSED)
DOUBTFUL = Trust(
    grade=Grade.DOUBTFUL,
    reasons=[
        finding("off_the_cpu", "v0", share=0.25),
        finding("checks_not_run", checks=["timed steps", "inputs"]),
    ],
    checks=PASSED,
)


def test_comparisons_of_one_grade_for_the_same_reasons_share_a_line():
    unchecked = Trust(grade=Grade.UNCHECKED, reasons=[finding("returns_nothing")], checks=PASSED)
    assert grades(trusted(DOUBTFUL, VERIFIED, VERIFIED, unchecked)) == [
        ("v0 doubtful: off the CPU 25%, not checked: timed steps, inputs", "yellow"),
        (f"v1, v2 verified: {len(CheckKind)} checks ran", "green"),
        ("v3 unchecked: returns nothing", "yellow"),
    ]
    assert grades(trusted(*[VERIFIED] * 4)) == [
        (f"all 4 comparisons verified: {len(CheckKind)} checks ran", "green")
    ]


def test_a_comparison_that_claims_nothing_has_no_line():
    assert grades(trusted(Trust(checks=PASSED))) == []
    assert grades(run(variant("old"), variant("new"), comparisons=[compared()])) == []
    assert checks(run(variant("old"), variant("new"), comparisons=[compared()])) is None


def test_of_two_variants_that_are_doubted_alike_each_line_has_its_own_number():
    both = [finding("off_the_cpu", "old", share=0.9), finding("off_the_cpu", "v0", share=0.25)]
    assert grades(trusted(Trust(grade=Grade.DOUBTFUL, reasons=both))) == [
        ("v0 doubtful: off the CPU 25%", "yellow")
    ]


def test_every_check_has_a_row_in_its_order_and_those_that_showed_the_same_share_it():
    other = [
        Check(kind=CheckKind.OUTPUTS, state=CheckState.DOUBTFUL, result=finding("returns_nothing")),
        *PASSED[1:],
    ]
    lines = lines_of(trusted(VERIFIED, Trust(grade=Grade.DOUBTFUL, checks=other)), 200)
    assert [line.split("  ")[0] for line in lines[1:] if not line.startswith(" ")] == [
        kind.value for kind in CheckKind
    ]
    assert lines[1].split() == ["outputs", "passed", "v0:", *lines[1].split()[3:]]
    assert lines[2].split()[:2] == ["doubtful", "v1:"]
    assert lines[3].split()[:6] == ["timed", "steps", "passed", "4", "blocks", "checked"]


def test_what_one_interval_means_for_several_is_said_once():
    report = trusted(VERIFIED, VERIFIED)
    several = run(
        *report.variants,
        comparisons=report.comparisons,
        method=Method(comparisons=7, familywise=0.07),
    )
    text = "7 comparisons: the interval of each misses in 1% of runs at most, any of them in 7%"
    assert " ".join(lines_of(several)).endswith(text)
    assert "comparisons" not in " ".join(lines_of(report))


def test_a_reason_in_short_is_declared_or_what_stands_before_a_colon():
    assert short_sentence(finding("clocks_slowed", reasons=[])) == "clocks throttled"
    assert short_sentence(finding("xid", xid=31)) == "the driver reported Xid 31"
    assert short_sentence(finding("off_the_cpu", share="?")) == "off the cpu, share ?"
    assert short_sentence(finding("of_another_gpulab", x=1)) == "of another gpulab, x 1"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_nothing_of_a_recorded_run_is_wider_than_the_terminal(width, ascii_only, tmp_path):
    for name in ("precision-h100-1", "checks", "crash-late", "healthy"):
        report = report_of(name, tmp_path)
        drawn = checks(report)
        text = printed(drawn, width, ascii_only=ascii_only) if drawn else ""
        assert max(map(len, text.splitlines()), default=0) <= width
        assert text.isascii() or not ascii_only
