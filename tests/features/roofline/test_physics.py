"""A variant that is faster than its device can be is invalid, and so is every comparison with
it.
"""

import pytest
from synthetic_runs import INFOS, opening, report_of, request, run_of

from gpulab.core import events as e
from gpulab.core.statuses import CeilingChoice, CheckKind, ExitCode, Status, Verdict
from gpulab.features.roofline.events import Ceiling, CeilingsMeasured
from gpulab.features.roofline.physics import physics_of
from gpulab.features.roofline.report import roofs_of
from gpulab.report.build import fold_all
from gpulab.report.sentences import sentence

ROOF = 1e11
"""FLOP/s that were measured of the device; a step of a takes 1 ms."""


def run(b, *later, roof=ROOF, median=None, choice=CeilingChoice.NEEDED, **built):
    """The events of a run in which b takes this share of the time of a."""
    measured = Ceiling(roof="matrix", kind="fp32", unit="FLOP/s", best=roof, median=median or roof)
    opened = opening(request(*INFOS, ceilings=choice), dtype="fp32", **built)
    ceilings = CeilingsMeasured(ceilings=(measured,), at="2026-01-01T00:00:00+00:00", t=0.35)
    counted = (e.Counted(variant=name, operations=1, flops=None, t=0.36) for name in "ab")
    return run_of({"b": b}, opened=[*opened, ceilings, *counted], later=later)


def test_a_variant_above_the_roof_is_invalid_with_the_arithmetic():
    report = report_of(run(0.01, flops=5 * 10**7))
    variant, (comparison,) = report.variant("b"), report.comparisons
    assert (variant.status, variant.time_s, variant.roofline) == (Status.INVALID, None, None)
    assert (comparison.verdict, comparison.speedup, report.exit_code) == (
        Verdict.INVALID,
        None,
        ExitCode.INVALID,
    )
    values = comparison.reason.values
    assert (values["declared"], values["unit"], values["roof"]) == (
        5 * 10**7,
        "FLOP",
        "matrix fp32",
    )
    assert values["time_s"] == pytest.approx(1e-5, rel=0.01)
    assert values["rate"] == pytest.approx(5e12, rel=0.01)
    assert (values["roof_rate"], values["ratio"]) == (ROOF, pytest.approx(50, rel=0.01))
    assert sentence(comparison.reason).startswith(
        "declares 50.0 MFLOP in 10.0 µs: 5.00 TFLOP/s, 50.0x of matrix fp32"
    )
    assert report.variant("a").status == Status.OK


def test_with_a_baseline_above_the_roof_nothing_is_compared():
    report = report_of(run(1.5, flops=5 * 10**8))
    (comparison,) = report.comparisons
    assert (report.variant("a").status, comparison.verdict, comparison.speedup) == (
        "invalid",
        Verdict.INVALID,
        None,
    )
    # its own reason comes first
    assert (comparison.reason.code, comparison.reason.variant) == ("above_roof", "b")
    below = report_of(run(10.0, flops=5 * 10**8))
    (comparison,) = below.comparisons
    assert (below.variant("b").status, comparison.verdict) == (Status.OK, Verdict.INVALID)
    assert (comparison.reason.code, comparison.reason.variant) == ("above_roof", "a")
    assert below.exit_code == ExitCode.INVALID


@pytest.mark.parametrize(
    ("b", "options"),
    [
        (0.95, {"flops": 10**8}),
        (0.5, {"flops": 10**8, "choice": CeilingChoice.NONE}),
        (0.5, {"flops": 10**8, "median": ROOF / 2}),
        (0.2, {"flops": 10**8, "median": ROOF / 2}),
        (0.5, {"bytes": 10**12}),
    ],
)
def test_nobody_is_accused_below_the_roof_or_without_a_steady_one(b, options):
    report = report_of(run(b, **options))
    assert [variant.status for variant in report.variants] == [Status.OK, Status.OK]
    assert report.comparisons[0].speedup is not None


def test_what_the_check_showed_is_data():
    state = fold_all(run(0.5, flops=4 * 10**7))
    samples, roofs = state.samples.view(), roofs_of(state)
    examined = physics_of(state, state.variants["b"], samples, roofs)
    assert (examined.check, examined.ok, examined.count, examined.reason) == (
        CheckKind.PHYSICS,
        True,
        1,
        None,
    )
    assert examined.values["ratio"] == pytest.approx(0.8, rel=0.01)
    assert physics_of(state, state.variants["b"], samples, None) is None
    undeclared = fold_all(run(0.5))
    assert physics_of(undeclared, undeclared.variants["b"], samples, roofs) is None


@pytest.mark.parametrize(
    ("seconds", "code"), [(1.3, None), (0.93, "just_above_roof"), (0.85, "above_roof")]
)
def test_just_above_a_steady_roof_is_a_doubt_and_above_it_invalid(seconds, code):
    """The same work in so many milliseconds, of which the roof allows one."""
    state = fold_all(run(seconds, flops=ROOF // 1000))
    examined = physics_of(state, state.variants["b"], state.samples.view(), roofs_of(state))
    assert (examined.reason and examined.reason.code) == code
    assert examined.ok == (code != "above_roof")


def test_what_torch_did_not_count_may_be_a_convolution_with_fewer_flops():
    events = [event for event in run(0.5, flops=10**8) if not isinstance(event, e.Counted)]
    assert report_of(events).variant("b").status == Status.OK
    assert report_of(run(0.5, flops=10**8)).variant("b").status == Status.INVALID
