"""How a run came out: its exit code, the reason for it, and which of several counts."""

import pytest
from found import finding
from hypothesis import given
from hypothesis import strategies as st
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
from gpulab.core.statuses import (
    Conclusion,
    ExitCode,
    FailureKind,
    Outcome,
    Stage,
    Verdict,
    conclusion_of,
    first_in_order,
)

MISSING = finding("no_gpu", need="cuda")
BOOM = finding("text", text="boom")


def ended(outcome):
    return [e.RunEnded(outcome=outcome, t=101.0)]


def failed(variant, kind, cause=BOOM, stage=Stage.MEASURE):
    return e.VariantFailed(variant=variant, kind=kind, stage=stage, cause=cause, t=90.0)


def wrong(variant):
    return e.Checked(variant=variant, ok=False, reason=finding("output_has_nan"), t=90.0)


@pytest.mark.parametrize("kind", [FailureKind.CANCELLED, FailureKind.TIMEOUT])
@pytest.mark.parametrize("variant", ["a", "b", None])
def test_an_interrupted_run_keeps_its_completed_epochs(kind, variant):
    stopped = failed(variant, kind, finding("text", text="stopped"))
    report = report_of(
        [*opening(), *samples({"b": 0.5}, epochs=9), stopped, *ended(Outcome(kind.value))]
    )
    assert report.exit_code == {"cancelled": 130, "timeout": 3}[kind]
    assert report.comparisons[0].verdict == "faster"
    assert report.control.verdict == "no difference"
    assert {variant.status for variant in report.variants} == {"ok"}


def test_a_cancelled_run_tells_whether_its_measurement_was_complete():
    during = report_of([*opening(), *samples({"b": 0.5}), *ended(Outcome.CANCELLED)])
    after = report_of([*opening(), *samples({"b": 0.5}), END[0], *ended(Outcome.CANCELLED)])
    checking = e.StageStarted(stage=Stage.CHECK, t=0.2)
    before = report_of([*opening()[:2], checking, *ended(Outcome.CANCELLED)])
    assert before.reason == finding("stopped_before_measuring", reached="check")
    assert (during.outcome, during.reason) == ("interrupted", finding("stopped_while_measuring"))
    assert (after.outcome, after.reason) == ("interrupted", finding("stopped_after_measuring"))


def test_a_file_without_its_end_is_an_interrupted_run():
    report = report_of([*opening(), *samples({"b": 0.5}, epochs=9)])
    assert (report.outcome, report.exit_code, report.reason) == (
        "interrupted",
        130,
        finding("no_end"),
    )
    assert report.comparisons[0].verdict == "faster"
    assert {variant.status for variant in report.variants} == {"ok"}


def test_a_live_run_is_under_way_and_its_variants_are_pending():
    report = report_of([*opening(), *samples({"b": 0.5}, epochs=9)], live=True)
    assert (report.outcome, report.under_way) == ("under way", True)
    assert (report.exit_code, report.reason) == (None, None)
    assert {variant.status for variant in report.variants} == {"pending"}
    assert report.comparisons[0].verdict == "faster"
    assert report_of(run_of({"b": 0.5}), live=True).outcome == "measured"


def test_a_run_without_events_never_started():
    report = report_of([])
    assert (report.exit_code, report.reason, report.variants) == (3, finding("never_started"), [])
    live = report_of([e.StageStarted(stage=Stage.START)], live=True)
    assert (live.outcome, live.exit_code, live.reason) == ("under way", None, None)


def test_what_was_not_measured_when_the_run_ended_says_why():
    timed_out = failed("a", FailureKind.TIMEOUT, finding("timeout", timeout_s=600.0))
    report = report_of([*opening(), timed_out, *ended(Outcome.TIMEOUT)])
    assert [(variant.status, variant.reason) for variant in report.variants] == [
        ("failed", timed_out.cause),
        ("skipped", finding("ended_before", "b")),
    ]
    assert (report.exit_code, report.reason) == (
        3,
        finding("timeout", "a", timeout_s=600.0, stage="measure", line=None),
    )


def test_a_failed_run_gives_the_first_failure_with_its_place():
    failures = [failed("b", FailureKind.ERROR, stage=Stage.CHECK), failed(None, FailureKind.CRASH)]
    report = report_of([*opening(), *failures, *ended(Outcome.FAILED)])
    assert report.reason == finding("text", "b", text="boom", stage="check", line=None)
    assert [(failure.variant, failure.kind, failure.stage) for failure in report.failures] == [
        ("b", "error", "check"),
        (None, "crash", "measure"),
    ]


def test_a_skipped_baseline_fails_the_run_with_its_reason():
    infos = (VariantInfo(name="a", missing=MISSING), INFOS[1])
    report = report_of([*opening(request(*infos)), *END])
    assert (report.exit_code, report.reason) == (
        3,
        finding("baseline_skipped", cause="no_gpu", need="cuda"),
    )
    assert report.variants[0].status == "skipped"
    by_itself = e.VariantSkipped(
        variant="a", reason=finding("skipped_by_variant", reason="no bf16"), t=0.3
    )
    report = report_of([*opening(), by_itself, *END])
    assert report.reason == finding(
        "baseline_skipped", cause="skipped_by_variant", reason="no bf16"
    )


def test_a_skipped_variant_fails_nothing():
    infos = (INFOS[0], VariantInfo(name="b", against="a", missing=MISSING))
    report = report_of(run_of({}, run_request=request(*infos), names=("a", "control")))
    assert (report.exit_code, report.variant("b").status, report.variant("b").reason) == (
        0,
        "skipped",
        MISSING,
    )


def test_a_required_speedup():
    events = run_of({"b": 0.5})
    assert report_of(events, required_speedup=1.5).exit_code == 0
    slower = report_of(events, required_speedup=2.5)
    assert (slower.exit_code, slower.outcome) == (5, "slower than required")
    assert slower.reason == finding("below_required", "b", required=2.5)
    unclear = report_of(events, required_speedup=2.0)
    assert (unclear.exit_code, unclear.outcome) == (6, "inconclusive")
    assert unclear.reason == finding("not_shown_to_reach", "b", required=2.0)
    (comparison,) = unclear.comparisons
    assert report_of(events, required_speedup=comparison.speedup.low).exit_code == 0
    assert report_of(events, required_speedup=comparison.speedup.high).exit_code == 6


@pytest.mark.parametrize(
    ("exercise", "code"), [("", ExitCode.MEASURED), ("row_norms", ExitCode.INCONCLUSIVE)]
)
def test_an_unchecked_answer_to_an_exercise_does_not_pass(exercise, code):
    unchecked = e.Unchecked(variant="b", reason=finding("returns_nothing", "b"), t=0.3)
    asked = request(subject={"exercise": exercise}, fail_below=1.5)
    report = report_of(run_of({"b": 0.5}, opened=[*opening(asked), unchecked]))
    assert report.comparisons[0].verdict == Verdict.UNCHECKED
    assert report.exit_code == code
    assert report.reason == (finding("exercise_unchecked", "b") if exercise else None)


def test_a_required_speedup_needs_every_comparison():
    infos, names = (*INFOS, VariantInfo(name="c", against="a")), ("a", "control", "b", "c")
    events = run_of({"b": 0.25, "c": 0.5}, run_request=request(*infos), names=names)
    assert report_of(events, required_speedup=3.0).reason == finding(
        "below_required", "c", required=3.0
    )
    assert report_of(events, required_speedup=1.9).exit_code == 0
    functions = run_of({}, run_request=functions_request("a", "b"))
    nothing = report_of(functions, required_speedup=1.0)
    assert (nothing.exit_code, nothing.reason) == (6, finding("nothing_compared", required=1.0))


def test_an_invalid_comparison_is_no_reason_to_ask_for_a_speedup():
    refused = e.VariantRefused(variant="b", reason=finding("items_differ"), t=0.3)
    report = report_of(
        [*opening(), refused, *samples({}, names=("a", "control")), *END], required_speedup=1.0
    )
    assert (report.exit_code, report.outcome) == (7, "invalid")


PRECEDENCE = [130, 3, 4, 7, 8, 5, 6, 0]


@given(st.lists(st.sampled_from(list(ExitCode))))
def test_of_several_exit_codes_the_first_in_order_counts(codes):
    expected = min(codes, key=PRECEDENCE.index, default=ExitCode.MEASURED)
    assert first_in_order(codes) == expected
    assert first_in_order(iter(codes)) == expected


def test_every_exit_code_has_a_conclusion():
    conclusions = {conclusion_of(code) for code in ExitCode}
    assert set(Conclusion) - conclusions == {Conclusion.UNDER_WAY, Conclusion.SKIPPED}
    assert sorted(PRECEDENCE) == sorted(ExitCode)


@pytest.mark.parametrize(
    ("happened", "code"),
    [
        ([wrong("b"), failed("b", FailureKind.CRASH)], 3),
        ([wrong("b"), e.VariantRefused(variant="a", reason=BOOM)], 4),
        ([e.VariantRefused(variant="b", reason=BOOM)], 7),
        ([], 5),
    ],
)
def test_within_a_run_the_same_order_holds(happened, code):
    assert report_of(run_of({"b": 2.0}, later=happened), required_speedup=1.5).exit_code == code
