"""Several runs of the same: the exact interval over their medians, which of them count, and the
gate on it.
"""

from math import exp

import pytest
from found import finding
from reports import run_report, variant_report

from gpulab.core.estimate import Estimate
from gpulab.core.jobs import Required
from gpulab.core.statuses import Conclusion, ExitCode, Status, Verdict
from gpulab.features.repeats.report import repeat_reports
from gpulab.report.commands import combine
from gpulab.report.report import Progress
from gpulab.stats.comparison import Comparison, refused

EIGHT = [1.6, 1.52, 1.69, 1.55, 1.58, 1.66, 1.61, 1.59]


def run(speedup, *, verdict=Verdict.FASTER, scenario="s", variant="new", **changes):
    comparison = Comparison(
        variant=variant,
        against="old",
        speedup=Estimate(value=speedup, low=speedup, high=speedup),
        verdict=verdict,
    )
    if verdict in (Verdict.WRONG, Verdict.INVALID):
        comparison = refused(comparison, verdict, None)
    variants = [
        variant_report(name="old", status=Status.OK, time_s=Estimate(value=1.0)),
        variant_report(name=variant, status=Status.OK, time_s=Estimate(value=1 / speedup)),
    ]
    return run_report(scenario=scenario, variants=variants, comparisons=[comparison], **changes)


def test_eight_runs_carry_the_exact_interval():
    (entry,) = repeat_reports([run(speedup) for speedup in EIGHT])
    assert (entry.variant, entry.against, entry.runs, entry.verdict) == (
        "new",
        "old",
        8,
        Verdict.FASTER,
    )
    assert entry.speedup.ends == pytest.approx((1.52, 1.69))
    assert entry.speedup.value == pytest.approx((1.59 * 1.6) ** 0.5)  # the median of log-ratios
    assert entry.speedups == EIGHT
    assert (entry.time_s.low, entry.time_s.high) == pytest.approx((1 / 1.69, 1 / 1.52))


def test_the_time_that_the_runs_took_together_is_known():
    """What changes in longer than that is in no interval."""
    first = run(1.5, at="2026-11-22T10:00:00+00:00", progress=Progress(elapsed_s=20.0))
    last = run(1.6, at="2026-11-22T10:09:30+00:00", progress=Progress(elapsed_s=30.0))
    (entry,) = repeat_reports([first, last])
    assert entry.span_s == 600.0
    for odd in ("", "yesterday", "2026-11-22T10:09:30"):
        (entry,) = repeat_reports([first, run(1.6, at=odd)])
        assert entry.span_s is None


def test_more_runs_leave_out_the_outermost():
    speedups = [exp(0.01 * number) for number in range(20)]
    (entry,) = repeat_reports([run(speedup) for speedup in speedups])
    assert entry.speedup.ends == pytest.approx((speedups[3], speedups[16]))


def test_fewer_have_no_interval_and_no_verdict():
    (entry,) = repeat_reports([run(speedup) for speedup in EIGHT[:7]])
    assert (entry.verdict, entry.runs) == (Verdict.INCONCLUSIVE, 7)
    assert entry.speedup == Estimate(value=1.6)
    assert repeat_reports([]) == []


def test_what_is_no_measurement_does_not_count():
    stopped = {"outcome": Conclusion.INTERRUPTED, "exit_code": ExitCode.INTERRUPTED}
    runs = [
        run(1.5),
        run(9.0, **stopped, reason=finding("stopped_while_measuring")),
        run(1.6, **stopped, reason=finding("stopped_after_measuring")),
        run(9.0, verdict=Verdict.WRONG),
        run(9.0, verdict=Verdict.INVALID),
        run_report(scenario="s", outcome=Conclusion.FAILED, exit_code=ExitCode.FAILED),
    ]
    (entry,) = repeat_reports(runs)
    assert entry.speedups == [1.5, 1.6]


def test_an_unchecked_speedup_is_unchecked_over_runs():
    runs = [run(speedup) for speedup in EIGHT] + [run(1.6, verdict=Verdict.UNCHECKED)]
    assert repeat_reports(runs)[0].verdict == Verdict.UNCHECKED


def test_scenarios_and_variants_are_kept_apart():
    runs = [
        run(1.5),
        run(2.5, scenario="t"),
        run(1.6),
        run(2.6, scenario="t"),
        run(3.5, variant="newer"),
    ]
    runs.append(run(9.0, params={"n": 1}))
    assert [(entry.scenario, entry.variant, entry.speedups) for entry in repeat_reports(runs)] == [
        ("s", "new", [1.5, 1.6]),
        ("s", "newer", [3.5]),
        ("t", "new", [2.5, 2.6]),
        ("s", "new", [9.0]),
    ]


def test_of_functions_the_times_count():
    runs = [
        run_report(
            scenario="f",
            functions=True,
            variants=[variant_report(name="step", status=Status.OK, time_s=Estimate(value=time_s))],
        )
        for time_s in EIGHT
    ]
    (entry,) = repeat_reports(runs)
    assert (entry.variant, entry.against, entry.speedup, entry.verdict) == (
        "step",
        None,
        None,
        None,
    )
    assert (entry.time_s.value, entry.time_s.low, entry.time_s.high) == pytest.approx(
        (1.595, 1.52, 1.69)
    )


@pytest.mark.parametrize(
    ("speedups", "required", "code", "reason"),
    [
        (EIGHT, 1.5, 0, None),
        (EIGHT, 1.55, 6, finding("not_shown_to_reach", "new", required=1.55)),
        (EIGHT, 1.7, 5, finding("below_required", "new", required=1.7)),
        (EIGHT[:7], 1.2, 6, finding("too_few_runs", "new", runs=7, needed=8)),
        ([], 1.2, 6, finding("nothing_compared", required=1.2)),
    ],
)
def test_the_gate_is_for_the_interval_over_runs(speedups, required, code, reason):
    runs = [run(speedup) for speedup in speedups] or [run_report(scenario="s")]
    command = combine(
        runs, {}, (), repeat_reports(runs), required_of=lambda _: Required(every=required)
    )
    assert (command.exit_code, command.reason) == (code, reason)


def test_a_variant_that_was_not_compared_is_not_shown_to_reach_anything():
    runs = [run(speedup) for speedup in EIGHT]
    required = Required(variants={"new": 1.2, "other": 1.2})
    command = combine(runs, {}, (), repeat_reports(runs), required_of=lambda _: required)
    assert command.exit_code == ExitCode.INCONCLUSIVE


def test_a_run_that_failed_comes_before_the_gate():
    runs = [
        *(run(speedup) for speedup in EIGHT),
        run_report(scenario="s", exit_code=ExitCode.FAILED),
    ]
    assert (
        combine(
            runs, {}, (), repeat_reports(runs), required_of=lambda _: Required(every=1.2)
        ).exit_code
        == ExitCode.FAILED
    )
