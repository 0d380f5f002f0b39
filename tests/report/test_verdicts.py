"""What a run's comparisons conclude: with a control, refusals, failures, and outputs that nobody
checked.
"""

import pytest
from found import finding
from synthetic_runs import (
    END,
    INFOS,
    functions_request,
    opening,
    report_of,
    request,
    run_of,
    samples,
)

from gpulab.core import events as e
from gpulab.core.jobs import VariantInfo
from gpulab.core.statuses import FailureKind, Outcome, Stage

THREE = (*INFOS, VariantInfo(name="c", against="a"))
NAMES_OF_THREE = ("a", "control", "b", "c")


def failed(variant, kind=FailureKind.CRASH, line=None):
    return e.VariantFailed(
        variant=variant,
        kind=kind,
        stage=Stage.MEASURE,
        cause=finding("text", text="boom"),
        line=line,
        t=90.0,
    )


def verdicts(report):
    return [
        (comparison.variant, comparison.verdict, comparison.speedup)
        for comparison in report.comparisons
    ]


def test_a_finished_run():
    report = report_of(run_of({"b": 0.5}, size=37))
    assert (report.exit_code, report.outcome, report.reason) == (0, "measured", None)
    (comparison,) = report.comparisons
    assert (comparison.verdict, comparison.pairs, comparison.dropped) == ("faster", 100, 0)
    assert comparison.speedup.value == pytest.approx(2, rel=1e-3)
    assert report.control.verdict == "no difference"
    assert (report.method.epochs, report.method.rounds, report.method.stopped) == (20, 100, "width")
    first = report.variants[0]
    assert first.contention == pytest.approx(0.05)
    assert first.time_s.value == pytest.approx(1e-3, rel=1e-2)
    assert first.time_s.low <= first.time_s.value <= first.time_s.high
    assert (report.best, [variant.status for variant in report.variants]) == ("b", ["ok", "ok"])


def test_a_control_that_differs_takes_every_verdict_back():
    report = report_of(run_of({"b": 0.5, "control": 1.1}))
    assert (report.exit_code, report.outcome, report.control.verdict) == (7, "invalid", "slower")
    assert verdicts(report) == [("b", "invalid", None)]
    assert report.reason == finding(
        "control_differs", verdict="slower", speedup=report.control.speedup.value
    )
    assert report.comparisons[0].reason == report.reason
    assert report.best is None


def test_a_control_of_functions_that_differs_invalidates_nothing():
    report = report_of(run_of({"b": 0.5, "control": 1.1}, run_request=functions_request("a", "b")))
    assert (report.exit_code, report.reason, report.comparisons) == (0, None, [])
    assert report.control.verdict == "slower"
    assert [variant.status for variant in report.variants] == ["ok", "ok"]


@pytest.mark.parametrize("after", ["baseline", "variant"])
def test_a_wrong_output_has_that_verdict_and_no_speedup(after):
    name = "a" if after == "baseline" else "b"
    reason = finding("output_has_nan")
    wrong = e.Checked(variant=name, ok=False, reason=reason, t=90.0)
    report = report_of(run_of({"b": 0.5}, later=[wrong]))
    assert (report.exit_code, report.outcome) == (4, "wrong")
    assert (report.variant(name).status, report.variant(name).reason) == ("wrong", reason)
    assert report.variant(name).time_s is None
    assert verdicts(report) == ([] if after == "baseline" else [("b", "wrong", None)])
    assert all(comparison.reason == reason for comparison in report.comparisons)


def test_a_refused_variant_is_invalid_though_it_was_never_measured():
    reason = finding("items_differ", items=1.0, baseline=2.0)
    refused = e.VariantRefused(variant="b", reason=reason, t=0.25)
    events = [*opening(), refused, *samples({}, names=("a", "control")), *END]
    report = report_of(events)
    assert (report.exit_code, verdicts(report)) == (7, [("b", "invalid", None)])
    assert report.comparisons[0].reason == reason


def test_a_variant_that_fails_late_keeps_the_pairs_completed_before_and_the_others_keep_theirs():
    events = run_of(
        {"b": 0.5, "c": 2.0},
        run_request=request(*THREE),
        names=NAMES_OF_THREE,
        later=[failed("b", line=3)],
        end=[e.RunEnded(outcome=Outcome.FAILED, t=101.0)],
    )
    report = report_of(events)
    assert report.exit_code == 3
    b, c = report.comparisons
    assert (b.verdict, b.speedup.value, b.pairs) == ("faster", pytest.approx(2, rel=1e-3), 100)
    assert b.speedup.low <= b.speedup.value <= b.speedup.high
    assert b.reason == finding("failed_after", "b", count=20, unit="epochs")
    assert (c.verdict, c.reason, report.best) == ("slower", None, "c")
    assert (report.variant("b").status, report.variant("b").line, report.variant("b").stage) == (
        "failed",
        3,
        "measure",
    )
    assert report.control.verdict == "no difference"
    assert report.reason == finding("text", "b", text="boom", stage="measure", line=3)


def test_a_baseline_that_crashes_late_keeps_the_pairs_of_the_others():
    report = report_of(
        run_of({"b": 0.5}, later=[failed("a")], end=[e.RunEnded(outcome=Outcome.FAILED, t=101.0)])
    )
    assert (report.exit_code, report.variants[0].status) == (3, "failed")
    assert verdicts(report)[0][:2] == ("b", "faster")
    assert report.comparisons[0].reason == finding("failed_after", "a", count=20, unit="epochs")


def test_a_variant_that_fails_before_there_is_an_interval_has_no_comparison():
    failing = [failed("b")], [e.RunEnded(outcome=Outcome.FAILED, t=101.0)]
    report = report_of(run_of({"b": 0.5}, epochs=7, later=failing[0], end=failing[1]))
    assert (report.exit_code, report.comparisons, report.best_among) == (3, [], [])


def test_a_variant_that_did_not_fit_is_out_of_memory_and_no_failure():
    full = e.OutOfMemory(
        variant="b",
        stage=Stage.BUILD,
        cause=finding("exception", message="not enough memory"),
        t=0.25,
    )
    report = report_of([*opening(), full, *samples({}, names=("a", "control")), *END])
    variant = report.variant("b")
    assert (report.exit_code, report.failures, report.comparisons) == (0, [], [])
    assert (variant.status, variant.reason.code, variant.stage) == (
        "out of memory",
        "exception",
        "build",
    )


def test_an_output_that_cannot_be_compared_leaves_the_speedup_and_says_so():
    unchecked = e.Unchecked(variant="b", reason=finding("returns_nothing"), t=0.3)
    report = report_of([*opening(), unchecked, *samples({"b": 0.5}), *END])
    (comparison,) = report.comparisons
    assert (report.exit_code, comparison.verdict, comparison.reason.code) == (
        0,
        "unchecked",
        "returns_nothing",
    )
    assert comparison.speedup.value == pytest.approx(2, rel=1e-3)
    assert comparison.speedup.low <= comparison.speedup.value <= comparison.speedup.high
    assert report.variant("b").unchecked == finding("returns_nothing")
    assert report.best == "b"


def test_an_unchecked_baseline_leaves_every_comparison_unchecked():
    unchecked = e.Unchecked(variant="a", reason=finding("returns_nothing"), t=0.3)
    opened = [*opening(request(*THREE)), unchecked]
    report = report_of(run_of({"b": 0.5, "c": 2.0}, opened=opened, names=NAMES_OF_THREE))
    assert [comparison.verdict for comparison in report.comparisons] == ["unchecked", "unchecked"]
    assert {comparison.reason.code for comparison in report.comparisons} == {"returns_nothing"}
    assert report.control.verdict == "no difference"


def test_a_variant_that_its_author_leaves_unchecked():
    infos = (INFOS[0], VariantInfo(name="b", against="a", unchecked="random numbers"))
    report = report_of(run_of({"b": 0.5}, run_request=request(*infos)))
    (comparison,) = report.comparisons
    assert comparison.verdict == "unchecked"
    assert comparison.reason == finding("declared_unchecked", "b", reason="random numbers")


def test_too_few_epochs_are_inconclusive_and_not_unchecked():
    unchecked = e.Unchecked(variant="b", reason=finding("returns_nothing"), t=0.3)
    report = report_of([*opening(), unchecked, *samples({"b": 0.5}, epochs=7), *END])
    (comparison,) = report.comparisons
    assert (comparison.verdict, comparison.reason.code, comparison.speedup) == (
        "inconclusive",
        "too_few_values",
        None,
    )


def test_a_ladder_has_a_verdict_for_each_rung_against_the_baseline_and_the_rung_below():
    report = report_of(
        run_of(
            {"b": 0.5, "c": 0.75}, run_request=request(*THREE, ladder=True), names=NAMES_OF_THREE
        )
    )
    assert {
        (comparison.variant, comparison.against): comparison.verdict
        for comparison in report.comparisons
    } == {
        ("b", "a"): "faster",
        ("c", "a"): "faster",
        ("c", "b"): "slower",
    }
    report = report_of(
        run_of(
            {"b": 0.5, "control": 1.1},
            run_request=request(*THREE, ladder=True),
            names=NAMES_OF_THREE,
        )
    )
    assert {comparison.verdict for comparison in report.comparisons} == {"invalid"}


def test_a_variant_that_cannot_be_profiled_keeps_its_verdict_and_fails_no_run():
    noticed = e.FindingMade(
        finding=finding("profiling_variant_failed", "b", message="not while profiled"), t=90.0
    )
    report = report_of(run_of({"b": 0.5}, later=[noticed]))
    assert (report.exit_code, report.outcome, verdicts(report)[0][:2]) == (
        0,
        "measured",
        ("b", "faster"),
    )
    assert (report.failures, report.variant("b").status) == ([], "ok")
