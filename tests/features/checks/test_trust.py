"""The trust report of a comparison: what each check showed, and the grade that follows from all of
them.
"""

import pytest
from devices import H200
from found import finding
from synthetic_runs import END, opening, report_of, request, run_of, samples

from gpulab.core import events as e
from gpulab.core.jobs import VariantInfo
from gpulab.core.machine import Device
from gpulab.core.statuses import (
    CheckKind,
    CheckState,
    Grade,
)
from gpulab.features.telemetry.events import TelemetryStarted

OF_A_WORKER = [
    kind
    for kind in CheckKind
    if kind not in (CheckKind.CONTROL, CheckKind.PROCESSES, CheckKind.CONTENTION)
]


def examined(*kinds, variant="b", **changes):
    return [
        e.Examined(variant=variant, check=kind, t=0.35, **changes) for kind in kinds or OF_A_WORKER
    ]


def checked(variant="b", **changes):
    values = {"ok": True, "error": 1e-7, "tolerance": 1e-4, **changes}
    return e.Checked(variant=variant, t=0.3, **values)


def thread(processes=8, **options):
    """The opening of a run in processes, on one thread of a CPU."""
    return opening(processes=processes, device=Device(kind="cpu", name="c", threads=1), **options)


def trust_of(*events, ratios=None, opened=None, **options):
    report = report_of(
        [*(opened or thread()), *events, *samples(ratios or {"b": 0.5}, **options), *END]
    )
    return report.comparison("b").trust


def check_of(trust, kind):
    (check,) = [check for check in trust.checks if check.kind == kind]
    return check


def codes(trust):
    return [reason.code for reason in trust.reasons]


def test_where_every_check_ran_and_passed_the_comparison_is_verified():
    trust = trust_of(checked(), *examined())
    assert (trust.grade, trust.reasons) == (Grade.VERIFIED, [])
    assert trust.ran == len(CheckKind)
    assert {check.state for check in trust.checks} == {CheckState.PASSED}


@pytest.mark.parametrize("missing", [CheckKind.TIMED_STEPS, CheckKind.INPUTS])
def test_without_a_check_that_decides_it_is_doubtful(missing):
    others = [kind for kind in OF_A_WORKER if kind != missing]
    trust = trust_of(checked(), *examined(*others))
    assert trust.grade == Grade.DOUBTFUL
    assert trust.reasons == [finding("checks_not_run", checks=[missing.value])]
    assert check_of(trust, missing).result == finding("check_not_made")


def test_outputs_that_nobody_compared_are_unchecked_whatever_else_passed():
    nothing = e.Unchecked(variant="b", reason=finding("returns_nothing"), t=0.3)
    others = [kind for kind in OF_A_WORKER if kind != CheckKind.OUTPUTS]
    trust = trust_of(nothing, *examined(*others))
    assert (trust.grade, trust.reasons) == (Grade.UNCHECKED, [finding("returns_nothing")])


def test_where_a_null_answer_passes_too_outputs_are_as_good_as_unchecked():
    reason = finding("baseline_is_zeros")
    passed = examined(CheckKind.NULL_ANSWERS, variant="a", ok=False, reason=reason)
    report = report_of([*thread(), checked(), *examined(), *passed, *samples({"b": 0.5}), *END])
    trust = report.comparison("b").trust
    assert (report.comparison("b").verdict, trust.grade, trust.reasons) == (
        "faster",
        Grade.UNCHECKED,
        [reason],
    )


def test_a_check_that_passed_with_a_reason_casts_doubt():
    reason = finding("lower_precision", "b", allowed=0.1, baseline=1e-4)
    trust = trust_of(checked(), *examined(), *examined(CheckKind.PHYSICS, reason=reason))
    assert (trust.grade, trust.reasons) == (Grade.DOUBTFUL, [reason])
    assert check_of(trust, CheckKind.PHYSICS).state == CheckState.DOUBTFUL


@pytest.mark.parametrize(("wrong", "verdict"), [(True, "wrong"), (False, "invalid")])
def test_a_check_that_failed_leaves_no_grade(wrong, verdict):
    reason = finding("ignores_its_inputs")
    failed = examined(CheckKind.TIMED_STEPS, ok=False, wrong=wrong, reason=reason)
    report = report_of([*thread(), checked(), *failed, *samples({"b": 0.5}), *END])
    (comparison,) = report.comparisons
    assert (comparison.verdict, comparison.trust.grade, comparison.trust.reasons) == (
        verdict,
        None,
        [reason],
    )
    check = check_of(comparison.trust, CheckKind.TIMED_STEPS)
    assert (check.state, check.result) == ("failed", reason)


def test_few_processes_one_process_and_processes_that_are_alike_are_doubts():
    of_eight = check_of(trust_of(), CheckKind.PROCESSES)
    assert (of_eight.state, of_eight.result.values["count"], of_eight.result.values["pinned"]) == (
        "passed",
        8,
        False,
    )
    old = report_of(run_of({"b": 0.5})).comparisons[0].trust
    assert check_of(old, CheckKind.PROCESSES).result == finding("measured_in_one_process")
    few = report_of([*thread(5), *samples({"b": 0.5}), *END]).comparisons[0]
    assert (few.speedup, check_of(few.trust, CheckKind.PROCESSES).result.code) == (
        None,
        "few_processes",
    )
    pinned = opening(request(seed=1), processes=8)
    assert check_of(trust_of(opened=pinned), CheckKind.PROCESSES).result.values["pinned"] is True


@pytest.mark.parametrize(
    ("ratio", "control", "spread", "state"),
    [
        (0.9, 1.0, 0.2, "doubtful"),  # as uncertain as the effect is large
        (0.99, 1.0, 0.05, "doubtful"),
        (0.5, 1.0, 0.02, "passed"),
        (2.0, 1.0, 0.02, "passed"),
        (0.5, 1.012, 0.01, "doubtful"),  # not the same as itself
        (0.99, 1.0, 0.001, "passed"),
        (1.0, 1.0, 0.05, "passed"),  # no effect is claimed
    ],
)
def test_a_control_is_a_doubt_where_it_leaves_out_1_or_is_wider_than_the_effect(
    ratio, control, spread, state
):
    trust = trust_of(ratios={"b": ratio, "control": control}, spread={"control": spread})
    check = check_of(trust, CheckKind.CONTROL)
    assert check.state == state, check
    doubt = "control_too_wide" if control == 1.0 else "control_leaves_out_1"
    assert (doubt in codes(trust)) == (state == "doubtful")
    assert {"speedup", "low", "high"} <= check.result.values.keys()


def test_contention_of_one_thread_is_a_number_and_much_of_it_a_doubt():
    check = check_of(trust_of(), CheckKind.CONTENTION)
    assert (check.state, check.result.values["share"]) == ("passed", pytest.approx(0.05))
    timed = samples({"b": 0.5})
    for event in timed:
        event.cpu_s[:] = [time_s * 0.7 for time_s in event.times_s]
    busy = report_of([*thread(), *timed, *END]).comparisons[0].trust
    assert check_of(busy, CheckKind.CONTENTION).result == finding(
        "off_the_cpu", "a", share=pytest.approx(0.3)
    )
    threads = trust_of(opened=opening(processes=8, device=Device(kind="cpu", name="c", threads=4)))
    assert check_of(threads, CheckKind.CONTENTION).result == finding("contention_of_threads")


@pytest.mark.parametrize(
    ("unsupported", "state", "result"),
    [
        ({}, "passed", finding("clocks_watched", readings=0, capped=0)),
        (
            {"reasons": "not_permitted"},
            "not run",
            finding("clocks_not_checked", cause="not_permitted"),
        ),
    ],
)
def test_clocks_of_a_gpu_that_cannot_be_read_are_a_doubt(unsupported, state, result):
    started = TelemetryStarted(gpu="H200", uuid="GPU-1", unsupported=unsupported, t=0.35)
    opened = [*opening(request(telemetry="on", device="cuda"), device=H200, processes=8), started]
    trust = trust_of(opened=opened)
    check = check_of(trust, CheckKind.CLOCKS)
    assert (check.state, check.result) == (state, result)
    assert ("clocks_not_checked" in codes(trust)) == bool(unsupported)


def test_a_gpu_that_nobody_watched_is_a_doubt_and_a_cpu_has_nothing_to_watch():
    trust = trust_of(opened=opening(request(device="cuda"), device=H200, processes=8))
    assert "telemetry_off" in codes(trust)
    on_cpu = trust_of()
    assert (check_of(on_cpu, CheckKind.CLOCKS).state, "clocks_of_cpu" in codes(on_cpu)) == (
        "not run",
        False,
    )


@pytest.mark.parametrize(
    ("own", "baseline", "code"),
    [
        ({"flops": 500}, {"flops": 1000}, "fewer_flops"),
        ({"flops": 950}, {"flops": 1000}, None),
        ({"flops": 1000, "items": 2.0}, {"flops": 1000, "items": 1.0}, "fewer_flops"),
        ({"flops": None}, {"flops": 1000}, None),
    ],
)
def test_less_work_for_the_same_items_is_a_doubt_with_the_numbers(own, baseline, code):
    events = []
    for name, facts in (("a", baseline), ("b", own)):
        events.append(
            e.Built(
                variant=name, build_s=0.1, first_step_s=0.1, items=facts.get("items", 1.0), t=0.3
            )
        )
        events.append(e.Counted(variant=name, operations=1, flops=facts.get("flops"), t=0.3))
    trust = trust_of(*events)
    check = check_of(trust, CheckKind.WORK)
    assert check.state == ("doubtful" if code else "passed")
    assert (check.result in trust.reasons) == bool(code)
    assert check.result.code == (code or "work_counted")


def test_fewer_flops_of_the_first_rank_are_no_doubt_others_may_do_more():
    counted = [
        e.Counted(variant=name, operations=1, flops=flops, t=0.3)
        for name, flops in (("a", 2), ("b", 1))
    ]
    for ranks, state in ((0, "doubtful"), (2, "not run")):
        trust = trust_of(*counted, opened=thread(run_request=request(ranks=ranks)))
        assert check_of(trust, CheckKind.WORK).state == state


def test_a_comparison_that_claims_nothing_has_no_grade():
    trust = trust_of(opened=thread(5))
    assert (trust.grade, len(trust.checks)) == (None, len(CheckKind))
    report = report_of([*thread(), checked(), *examined(), *samples({"b": 1.0}, spread=0.2), *END])
    assert (report.comparison("b").verdict, report.comparison("b").trust.grade) == (
        "inconclusive",
        None,
    )


def test_what_several_processes_say_of_a_check_is_added_up_and_a_doubt_outlives_what_passed():
    reason = finding("output_ignores_change", "b")
    events = [
        *examined(CheckKind.TIMED_STEPS, count=3, values={"late": 1, "error": 2e-7, "ratio": None}),
        *examined(CheckKind.TIMED_STEPS, count=4, values={"late": 2, "error": 1e-7, "ratio": 1.0}),
        *examined(CheckKind.INPUTS, reason=reason),
        *examined(CheckKind.INPUTS, count=2),
        *examined(CheckKind.PHYSICS, skipped=finding("telemetry_off")),
        *examined(CheckKind.PHYSICS, values={"ratio": 0.5}),
    ]
    trust = trust_of(*events)
    values = {"count": 7, "late": 3, "error": 2e-7, "ratio": 1.0}
    assert check_of(trust, CheckKind.TIMED_STEPS).result.values == values
    assert (check_of(trust, CheckKind.INPUTS).state, check_of(trust, CheckKind.INPUTS).result) == (
        "doubtful",
        reason,
    )
    assert check_of(trust, CheckKind.PHYSICS).result.values == {"count": 1, "ratio": 0.5}


@pytest.mark.parametrize(
    ("ratios", "time", "doubted"),
    [
        ([1.25] * 6, 0.5, True),
        ([1.25, 1.3, 1.4, 1.2, 1.35, 0.9, 1.3], 0.5, True),
        ([1.25] * 3, 0.5, False),
        ([1.04, 0.96, 1.2, 1.0, 1.15, 1.3], 0.5, False),
        ([2.48] * 6, 0.01, False),
        ([2.48] * 6, 1.1, False),
    ],
)
def test_a_speedup_that_is_smaller_on_new_values_in_all_processes_is_a_doubt(ratios, time, doubted):
    """Where what is lost matters beside what is gained."""
    events = [
        event
        for ratio in ratios
        for event in examined(CheckKind.TIMED_STEPS, count=3, values={"lost_on_new": ratio})
    ]
    trust = trust_of(*events, ratios={"b": time})
    assert ("less_on_new_values" in codes(trust)) == doubted
    state = check_of(trust, CheckKind.TIMED_STEPS).state
    assert state == (CheckState.DOUBTFUL if doubted else CheckState.PASSED)


def test_new_values_of_a_variant_that_is_compared_with_none_are_no_doubt():
    """As of timing_without_sync, where each variant shows clocks."""
    alone = request(VariantInfo(name="a"), VariantInfo(name="b"))
    lost = examined(CheckKind.TIMED_STEPS, count=3, values={"lost_on_new": 1.25}) * 6
    report = report_of([*thread(run_request=alone), *lost, *samples({"b": 0.5}), *END])
    assert (report.outcome, report.comparisons) == ("measured", [])


def test_what_the_baseline_showed_of_its_output_says_nothing_of_another_variants():
    skipped = finding("no_block_on_other_values", "b")
    trust = trust_of(
        *examined(CheckKind.TIMED_STEPS, variant="a", count=40),
        *examined(CheckKind.TIMED_STEPS, variant="b", count=0, skipped=skipped),
    )
    check = check_of(trust, CheckKind.TIMED_STEPS)
    assert (check.state, check.result) == (CheckState.NOT_RUN, skipped)
    assert "checks_not_run" in codes(trust)


def test_where_torch_computes_nothing_no_work_was_counted():
    counted = [e.Counted(variant=name, operations=0, flops=None, t=0.3) for name in "ab"]
    check = check_of(trust_of(*counted), CheckKind.WORK)
    assert (check.state, check.result) == ("not run", finding("calls_nothing_of_torch"))
