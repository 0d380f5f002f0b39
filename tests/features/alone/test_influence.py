"""Variants that influence each other: alone, before others were built, against the rounds."""

import pytest
from found import finding
from synthetic_runs import opening, report_of, run_of

from gpulab.core import events as e
from gpulab.core.estimate import Estimate
from gpulab.features.alone.events import AloneRun

BASELINE_S = 1e-3


def alone(speedups, baselines=None, later=1.0, first=True, after=None):
    """A process for each speedup of b over a, which takes a millisecond in each, or what
    `baselines` says; and `later` times as long after the rounds, in all or in each.
    """
    laters = later if isinstance(later, list) else [later] * len(speedups)
    events = []
    for process, speedup in enumerate(speedups):
        before_s = baselines[process] if baselines else BASELINE_S
        later_s = before_s * laters[process]
        events.append(
            AloneRun(
                variant="a",
                process=process,
                time_s=before_s,
                later_s=later_s,
                after={name: ratio * before_s for name, ratio in (after or {}).items()},
                t=50.0,
            )
        )
        events.append(
            AloneRun(variant="b", process=process, time_s=before_s / speedup, first=first, t=50.0)
        )
    return events


def comparison_of(speedups, *, rounds=2.0, **options):
    """Of a run whose rounds say 2x."""
    opened = opening(processes=20)
    return report_of(
        run_of({"b": 1 / rounds}, opened=opened, later=alone(speedups, **options))
    ).comparison("b")


@pytest.mark.parametrize(
    "speedups",
    [[0.9] * 5, [0.8, 0.95, 0.7, 0.9, 0.96], [*[0.9] * 6, 2.1]],
)
def test_a_variant_that_is_faster_among_the_others_alone_is_invalid_with_both_figures(speedups):
    comparison = comparison_of(speedups)
    middle = sorted(speedups)[len(speedups) // 2]
    assert (comparison.verdict, comparison.speedup) == ("invalid", None)
    assert comparison.reason.code == "variants_influence"
    assert comparison.reason.values == {
        "interleaved": pytest.approx(2.0, rel=1e-2),
        "alone": pytest.approx(middle),
        "rounds_s": pytest.approx(BASELINE_S / 2, rel=1e-2),
        "alone_s": pytest.approx(BASELINE_S / middle),
    }


@pytest.mark.parametrize(
    ("speedups", "baselines"),
    [
        ([4.3] * 8, None),  # slowed by others
        ([0.9] * 8, [0.45 * BASELINE_S] * 8),  # a baseline with two speeds
    ],
)
def test_a_speedup_that_others_or_the_baseline_change_is_doubted_and_nobody_accused(
    speedups, baselines
):
    comparison = comparison_of(speedups, baselines=baselines)
    assert comparison.verdict == "faster"
    assert "speedup_differs_alone" in {reason.code for reason in comparison.trust.reasons}


@pytest.mark.parametrize(
    "speedups",
    [
        [1.45] * 8,  # a power cap
        [1.1] * 8,  # dispatch of another library
        [1.0] * 3,  # too few to say so
        [1.0, 1.0, 1.1, 1.0, 2.1],  # a machine that is disturbed
    ],
)
def test_what_a_cap_or_a_busy_machine_may_do_is_no_accusation(speedups):
    assert comparison_of(speedups).verdict == "faster"


def test_what_was_built_after_another_variant_accuses_nobody():
    assert comparison_of([0.9] * 8, first=False).verdict == "faster"


def test_a_build_that_slows_the_baseline_down_is_named_and_makes_the_run_invalid():
    comparison = comparison_of([2.0] * 8, later=1.8, after={"b": 1.8, "c": 1.8})
    expected = finding("baseline_slowed", by="b", before_s=BASELINE_S, later_s=1.8e-3, ratio=1.8)
    assert (comparison.reason.code, comparison.reason.values["by"]) == (expected.code, "b")
    assert comparison.verdict == "invalid"


@pytest.mark.parametrize("after", [{}, {"b": 1.0, "c": 1.02}])
def test_a_baseline_that_no_build_slows_down_is_doubted_and_nobody_accused(after):
    comparison = comparison_of([2.0] * 8, later=1.8, after=after)
    assert comparison.verdict == "faster"
    assert "baseline_changed" in {reason.code for reason in comparison.trust.reasons}


@pytest.mark.parametrize("later", [[1.8] * 6 + [0.4], [1.8] * 4 + [0.9] * 2 + [1.8] * 5])
def test_processes_that_were_disturbed_do_not_hide_what_the_others_show(later):
    comparison = comparison_of([2.0] * len(later), later=later, after={"b": 1.8})
    assert (comparison.verdict, comparison.reason.code) == ("invalid", "baseline_slowed")


@pytest.mark.parametrize("later", [[1.8] * 3 + [0.9], [1.8] * 5 + [0.9], [1.8, 0.9] * 6])
def test_a_baseline_that_is_slower_in_too_few_processes_says_nothing(later):
    assert comparison_of([2.0] * len(later), later=later).verdict == "faster"


@pytest.mark.parametrize(("later", "processes"), [(1.2, 8), (0.5, 8), (1.8, 3)])
def test_a_first_build_that_is_as_fast_slower_or_seen_too_rarely_says_nothing(later, processes):
    assert comparison_of([2.0] * processes, later=later).verdict == "faster"


def test_the_sustained_speedup_is_over_processes_each_beside_its_own_baseline():
    """The machine drifts by a factor of two, and both with it."""
    baselines = [BASELINE_S * (1 + process / 7) for process in range(8)]
    sustained = comparison_of(
        [1.9, 2.0, 2.1, 2.0, 1.95, 2.05, 2.0, 2.0], baselines=baselines
    ).sustained
    assert (sustained.speedup.value, *sustained.speedup.ends) == pytest.approx((2.0, 1.9, 2.1))
    assert sustained.speedup.n == 8


def test_of_fewer_than_five_processes_it_has_no_interval():
    sustained = comparison_of([1.9, 2.0, 2.1]).sustained
    assert sustained.speedup == Estimate(value=pytest.approx(2.0), n=3)


def test_a_variant_that_cannot_be_built_alone_is_invalid():
    reason = finding("fails_alone", "b", message="KeyError: 'x'")
    later = [e.Examined(variant="b", check="variants alone", ok=False, reason=reason, t=50.0)]
    comparison = report_of(run_of({"b": 0.5}, later=later)).comparison("b")
    assert (comparison.verdict, comparison.reason) == ("invalid", reason)
