"""Findings that explain a result: no effect, fixes together, first steps, page faults, builds of
functions.
"""

import pytest
from found import finding
from msgspec.structs import replace
from synthetic_runs import INFOS, functions_request, opening, report_of, request, run_of

from gpulab.core import events as e
from gpulab.core.jobs import VariantInfo
from gpulab.core.statuses import Clock

FIXES = (
    VariantInfo(name="a"),
    VariantInfo(name="b", against="a"),
    VariantInfo(name="c", against="b"),
    VariantInfo(name="all_together", against="a"),
)
NAMES = ("a", "control", "b", "c", "all_together")


def explanations_of(report, code):
    """What explains the result, of that code, which weakens nothing."""
    assert not any(entry.code == code for entry in report.findings)
    return [entry for entry in report.explanations if entry.code == code]


def calibrated(steps):
    return [
        e.Calibrated(variant=name, steps_per_block=steps, step_s=1e-3, empty_block_s=1e-7)
        for name in "ab"
    ]


def test_a_scenario_that_knows_why_there_may_be_no_effect_says_so_beside_the_verdict_same():
    reason = "the allocator keeps memory"
    knows_why = request(subject={"no_effect_reason": reason})
    report = report_of(run_of({}, run_request=knows_why))
    assert report.comparisons[0].verdict == "same"
    assert explanations_of(report, "no_effect") == [finding("no_effect", "b", reason=reason)]
    assert report.no_effect_reason == reason
    for ratio in (0.5, 2.0):
        assert (
            explanations_of(report_of(run_of({"b": ratio}, run_request=knows_why)), "no_effect")
            == []
        )
    assert explanations_of(report_of(run_of({})), "no_effect") == []


def test_no_effect_is_about_the_baseline_only():
    infos = (*INFOS, VariantInfo(name="c", against="b"))
    knows_why = request(*infos, subject={"no_effect_reason": "none"})
    report = report_of(
        run_of({"b": 0.5, "c": 0.5}, run_request=knows_why, names=("a", "control", "b", "c"))
    )
    said = [(entry.variant, entry.against, entry.verdict) for entry in report.comparisons]
    assert said == [("b", "a", "faster"), ("c", "a", "faster"), ("c", "b", "same")]
    assert explanations_of(report, "no_effect") == []


@pytest.mark.parametrize(
    ("together", "relation"), [(0.5, "overlap"), (0.25, "multiply"), (0.1, "compound")]
)
def test_fixes_together_against_the_product_of_each(together, relation):
    ratios = {"b": 0.5, "c": 0.25, "all_together": together}  # twice as fast, and twice again
    report = report_of(run_of(ratios, run_request=request(*FIXES), names=NAMES, spread=0.01))
    assert report.together.relation == relation
    assert report.together.product == pytest.approx(4, rel=0.01)
    assert report.together.speedup.value == pytest.approx(1 / together, rel=0.01)
    (explanation,) = explanations_of(report, f"fixes_{relation}")
    assert explanation.variant is None
    assert explanation.values == {
        "product": report.together.product,
        "speedup": report.together.speedup.value,
        "low": report.together.speedup.low,
        "high": report.together.speedup.high,
    }


def test_together_needs_two_fixes_and_their_speedups():
    one_fix = (FIXES[0], FIXES[1], FIXES[3])
    names = ("a", "control", "b", "all_together")
    assert (
        report_of(
            run_of({"b": 0.5, "all_together": 0.4}, run_request=request(*one_fix), names=names)
        ).together
        is None
    )
    too_few = run_of(
        {"b": 0.5, "c": 0.3, "all_together": 0.2},
        run_request=request(*FIXES),
        names=NAMES,
        epochs=5,
    )
    assert report_of(too_few).together is None
    assert report_of(run_of({"b": 0.5})).together is None


def test_each_fix_counts_by_what_it_is_added_to_and_not_by_the_rung_below():
    ladder = tuple(replace(info, against=None if info.name == "a" else "a") for info in FIXES)
    ratios = {"b": 0.5, "c": 0.25, "all_together": 0.125}
    report = report_of(
        run_of(ratios, run_request=request(*ladder, ladder=True), names=NAMES, spread=0.01)
    )
    assert len(report.comparisons) == 5
    assert report.together.product == pytest.approx(8, rel=0.01)


@pytest.mark.parametrize(
    ("first_step_s", "expected"),
    [(0.4, False), (0.6, True)],
    ids=["under half a second", "of many steps"],
)
def test_a_first_step_that_sets_something_up(first_step_s, expected):
    report = report_of(run_of({}, opened=opening(first_step_s=first_step_s)))
    explanations = [finding("first_step_sets_up", name, first_step_s=first_step_s) for name in "ab"]
    assert explanations_of(report, "first_step_sets_up") == (explanations if expected else [])


def test_a_long_step_may_have_a_long_first_one():
    slow = [
        replace(event, times_s=[100 * time for time in event.times_s])
        for event in run_of({})
        if hasattr(event, "times_s")
    ]
    report = report_of([*opening(first_step_s=9.0), *slow])
    assert report.variants[0].time_s.value == pytest.approx(0.1, rel=0.01)
    assert explanations_of(report, "first_step_sets_up") == []


@pytest.mark.parametrize(
    ("faults", "steps", "per_step"), [(2048, 8, 256.0), (2047, 8, 0.0), (256, 1, 256.0)]
)
def test_page_faults_of_a_step(faults, steps, per_step):
    report = report_of(run_of({}, opened=[*opening(), *calibrated(steps)], faults=faults))
    values = {"faults": per_step, "bytes": per_step * 4096}
    assert explanations_of(report, "page_faults") == [
        finding("page_faults", name, **values) for name in "ab" if per_step
    ]


def test_on_the_device_clock_page_faults_are_not_of_the_step():
    opened = [*opening(request(clock=Clock.DEVICE)), *calibrated(1)]
    assert explanations_of(report_of(run_of({}, opened=opened, faults=9999)), "page_faults") == []


def test_plain_functions_and_builds_that_differ():
    functions = functions_request("a", "b")
    report = report_of(run_of({"control": 1.2}, run_request=functions))
    assert (report.functions, report.exit_code) == (True, 0)
    assert report.findings == [finding("plain_functions")]
    assert explanations_of(report, "builds_differ") == [
        finding("builds_differ", speedup=report.control.speedup.value)
    ]
    assert [variant.unchecked for variant in report.variants] == [
        finding("plain_function", name) for name in "ab"
    ]
    same = report_of(run_of({}, run_request=functions))
    assert explanations_of(same, "builds_differ") == []


def test_the_builds_of_a_scenario_that_differ_are_the_reason_and_no_explanation():
    report = report_of(run_of({"control": 1.2}))
    assert explanations_of(report, "builds_differ") == []
    assert report.reason.code == "control_differs"


@pytest.mark.parametrize(
    ("times", "spot"), [((1.0, 0.96, 0.93), "b"), ((1.0, 1.2, 1.5), "a"), ((1.0, 0.5, 0.2), "c")]
)
def test_the_sweet_spot_is_the_smallest_variant_close_to_the_best(times, spot):
    infos = (*INFOS, VariantInfo(name="c", against="a"))
    grows = request(*infos, increasing_memory=True)
    events = run_of(
        dict(zip("abc", times, strict=True)), run_request=grows, names=("a", "control", "b", "c")
    )
    assert report_of(events).sweet_spot == spot
    # of a run that came out as it should
    assert report_of(events, required_speedup=9.0).sweet_spot is None
    plain = run_of({"b": 0.5}, run_request=request(*infos), names=("a", "control", "b", "c"))
    assert report_of(plain).sweet_spot is None


def test_what_a_worker_notices_weakens_the_result_or_explains_it():
    noticed = finding("memory_snapshot", "b", file="f.pickle")
    explained = report_of(run_of({}, later=[e.FindingMade(finding=noticed, explains=True)]))
    assert (explained.findings, explained.explanations) == ([], [noticed])
    weakened = report_of(run_of({}, later=[e.FindingMade(finding=noticed)]))
    assert (weakened.findings, weakened.explanations) == ([noticed], [])
