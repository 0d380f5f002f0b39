"""The best variant: marked where the evidence says so, for all comparisons together."""

import random

import pytest
from synthetic_runs import INFOS, report_of, request, run_of

from gpulab.core.jobs import VariantInfo
from gpulab.stats import comparison as comparisons
from gpulab.stats.statistics import Interval, for_comparisons, median_interval, quantile

C = VariantInfo(name="c", against="a")
NAMES = ("a", "control", "b", "c")


def best_of(ratios, *infos, names=NAMES, **options):
    report = report_of(run_of(ratios, run_request=request(*INFOS, *infos), names=names, **options))
    return report.best, report.best_among


def test_the_best_variant_has_the_largest_speedup_over_the_baseline():
    names, infos = (*NAMES, "d"), (C, VariantInfo(name="d", against="b"))
    # d is measured against b too
    assert best_of({"b": 0.5, "c": 0.4, "d": 0.1}, *infos, names=names) == ("d", ["d"])
    assert best_of({"b": 0.5, "c": 0.4, "d": 0.45}, *infos, names=names) == ("c", ["c"])


def test_variants_that_cannot_be_told_apart_share_the_first_place():
    assert best_of({"b": 0.5, "c": 0.5}, C, spread=0.02)[0] is None
    best, among = best_of(
        {"b": 0.5, "c": 0.499, "d": 0.9}, C, VariantInfo(name="d", against="a"), names=(*NAMES, "d")
    )
    assert best == "c" or among == ["c", "b"]
    wide = best_of({"b": 0.95, "c": 0.8}, C, spread={"c": 0.9})
    # the largest, which is inconclusive, and what it is not shown to beat
    assert wide == (None, ["c", "b"])


def test_a_single_variant_is_the_best_whatever_its_verdict():
    assert report_of(run_of({"b": 0.8}, spread={"b": 0.9})).best == "b"
    assert report_of(run_of({"b": 2.0})).best_among == ["b"]


def test_pairs_tell_variants_apart_that_drift_together(monkeypatch):
    """Both drift by a tenth, and c takes 2 % less than b in every round."""
    usual = comparisons.keys_of
    drift = random.Random(1)
    run = run_of(
        {"b": 0.5, "c": 0.49}, run_request=request(*INFOS, C), names=NAMES, spread=0.0, epochs=10
    )
    for event in run:
        if hasattr(event, "times_s") and hasattr(event, "epoch"):
            slow = {epoch: drift.uniform(0.9, 1.1) for epoch in set(event.epoch)}
            unlike = [index > 1 for index in event.variant]
            event.times_s[:] = [
                time_s * (slow[epoch] if drifts else 1.0)
                for time_s, epoch, drifts in zip(event.times_s, event.epoch, unlike, strict=True)
            ]
    without = report_of(run)
    monkeypatch.setattr(
        "gpulab.report.state.keys_of", lambda job: [*dict.fromkeys([*usual(job), ("c", "b")])]
    )
    assert (report_of(run).best, report_of(run).best_among) == ("c", ["c"])
    if ("c", "b") not in usual(request(*INFOS, C).job):
        assert (without.best, without.best_among) == (None, ["c", "b"])


def test_what_one_interval_means_for_several():
    method = report_of(
        run_of({"b": 0.5, "c": 0.4}, run_request=request(*INFOS, C), names=NAMES)
    ).method
    assert (method.comparisons, method.familywise) == (2, pytest.approx(0.02))
    assert report_of(run_of({"b": 0.5})).method.comparisons == 1


@pytest.mark.parametrize(
    ("degrees", "confidence", "t"),
    [
        (1, 0.99, 63.657),
        (2, 0.99, 9.925),
        (7, 0.99, 3.499),
        (7, 0.999, 5.408),
        (8, 0.95, 2.306),
        (30, 0.99, 2.750),
    ],
)
def test_quantiles_of_students_t(degrees, confidence, t):
    assert quantile(confidence, degrees) == pytest.approx(t, rel=1e-3)


def test_an_interval_that_several_share_is_wider_and_covers_all_of_them():
    interval = Interval(1.0, 0.9, 1.2, 8)
    assert for_comparisons(interval, 1) == interval
    low, high = (for_comparisons(interval, 7).low, for_comparisons(interval, 7).high)
    assert low < 0.9
    assert high > 1.2
    draw, missed = random.Random(0), 0
    for _ in range(400):
        families = [median_interval([draw.gauss(0, 1) for _ in range(8)]) for _ in range(7)]
        missed += any(
            not wider.low <= 0 <= wider.high
            for wider in (for_comparisons(one, 7) for one in families)
        )
    assert missed <= 400 * 0.02
