"""Reports of runs that tests of views show: variants with whatever a test gives them."""

from reports import run_report, variant_report

from gpulab.core.estimate import Estimate
from gpulab.core.machine import Device
from gpulab.core.statuses import Conclusion, Status, Verdict
from gpulab.features.goodput.result import GoodputReport
from gpulab.stats.comparison import Comparison

CPU = Device(kind="cpu", name="AMD EPYC", threads=1)


def variant(name="variant", **changes):
    """A variant that was measured: 1 ms a step."""
    usual = {
        "status": Status.OK,
        "items": 2.0,
        "time_s": Estimate(value=1e-3, low=0.99e-3, high=1.01e-3),
    }
    return variant_report(name=name, **{**usual, **changes})


def run(*variants, **changes):
    """A measured run of a scenario."""
    usual = {"scenario": "scenario", "outcome": Conclusion.MEASURED, "variants": list(variants)}
    return run_report(**{**usual, **changes})


def profiled(*goodputs, **changes):
    """A run of variants of which only name and goodput are given: pairs of both."""
    return run(
        *(variant(name, goodput=GoodputReport(**values)) for name, values in goodputs), **changes
    )


def compared(name="new", against="old", speedup=1.5, verdict=Verdict.FASTER, **changes):
    """None as the speedup: nothing may be claimed, or nothing is known yet."""
    if isinstance(speedup, float):
        speedup = Estimate(value=speedup, low=0.95 * speedup, high=1.05 * speedup)
    changes = {"pairs": 9, **changes}
    return Comparison(variant=name, against=against, speedup=speedup, verdict=verdict, **changes)


def two_variants(before=None, after=None, **changes):
    """A run that compares a new variant with an old one; both with what their goodput has."""
    return profiled(
        ("old", before or {}), ("new", after or {}), **{"comparisons": [compared()], **changes}
    )
