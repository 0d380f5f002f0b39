"""Where a point is put, and the interval of its share of the roof."""

from dataclasses import replace

import pytest
from test_bound import GIGA, ROOFS, STREAM, ceiling, roof_between

from gpulab.core.estimate import Estimate
from gpulab.features.roofline.bound import StepFacts, limit_of
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.events import Ceiling
from gpulab.features.roofline.figure import drawn_rate


def placed(facts, roofs):
    return limit_of("one", facts, roofs)


def test_a_point_carries_the_interval_of_its_time():
    point = placed(replace(STREAM, time_s=Estimate(value=1.0, low=0.9, high=1.25)), ROOFS)
    assert point.flops_per_byte == pytest.approx(0.125)
    assert point.attainable == pytest.approx(12.5 * GIGA)
    assert (point.fraction.value, *point.fraction.ends) == pytest.approx((0.8, 0.64, 0.8 / 0.9))
    assert point.rate.low < point.rate.value < point.rate.high
    assert (point.reason.code, point.is_drawable) == ("near_memory_roof", True)
    bar = placed(replace(STREAM, flops=None), ROOFS)
    assert (bar.flops_per_byte, bar.unit, bar.rate.low, bar.is_drawable) == (
        None,
        "B/s",
        None,
        False,
    )
    assert bar.fraction.value == pytest.approx(0.8)


def test_the_interval_of_a_share_holds_the_error_of_the_roof():
    facts = StepFacts(time_s=Estimate(value=1.0, low=0.9, high=1.2), bytes=6 * 10**10)
    point = placed(facts, RoofSet([roof_between(8e10, 1e11)]))
    assert (point.fraction.value, point.fraction.low) == pytest.approx((0.6 / 0.9, 0.5))
    assert point.fraction.high == pytest.approx(0.6 / 0.9 / 0.8)


def test_a_share_of_a_roof_that_took_turns_with_the_variant_is_the_median_of_what_each_process_gives():
    """The machine was three times as fast in some processes: their own roof was so, too."""
    roof = Ceiling(roof="matrix", kind="fp32", unit="", best=1e12, median=1e12, processes=9)
    steady = RoofSet([roof, ceiling("matrix", "fp32", 2e12)])
    shares = [0.78, 0.79, 0.8, 0.8, 0.8, 0.8, 0.81, 0.82, 0.83]
    beside = {("matrix", "fp32"): [share / 1e12 for share in shares]}
    facts = StepFacts(time_s=Estimate(value=0.5, low=0.2, high=0.9), flops=10**12, beside=beside)
    point = placed(facts, steady)
    assert (point.roof, point.roof_processes) == ("matrix fp32", 9)
    assert (point.fraction.value, *point.fraction.ends) == pytest.approx((0.8, 0.78, 0.83))
    assert drawn_rate(point).value == pytest.approx(0.8 * point.attainable)
    few = placed(replace(facts, beside={("matrix", "fp32"): [8e-13] * 3}), steady)
    assert (few.fraction.value, few.fraction.low) == (pytest.approx(0.8), None)


@pytest.mark.parametrize(
    ("counted", "ratio"), [(None, None), (9.0e10, None), (3.2e11, 4.0), (2e10, 0.25)]
)
def test_counted_bytes_are_a_field_of_their_own(counted, ratio):
    point = placed(replace(STREAM, dram_bytes=counted), ROOFS)
    assert (point.bytes_counted, point.bytes_ratio) == (
        counted,
        pytest.approx(ratio) if ratio else None,
    )


def test_a_roof_of_arithmetic_is_scaled_to_the_clock_of_the_step_and_that_of_memory_is_not():
    """A roof that a power cap held back at 1,500 MHz is higher for a step at 1,800 MHz."""
    capped = [
        Ceiling(roof=roof, kind="fp32", unit="", best=1e12, median=1e12, sm_mhz=1500.0)
        for roof in ("matrix", "device memory")
    ]
    product = StepFacts(time_s=Estimate(value=1.0), flops=int(1.08e12), sm_mhz=1800.0)
    point = placed(product, RoofSet(capped))
    assert (point.attainable, point.fraction.value) == pytest.approx((1.2e12, 0.9))
    assert (point.bound, point.clock_scale) == ("compute", pytest.approx(1.2))
    assert drawn_rate(point).value == pytest.approx(0.9e12)  # below the roof as it was measured
    stream = StepFacts(time_s=Estimate(value=1.0), bytes=int(0.9e12), sm_mhz=1800.0)
    assert placed(stream, RoofSet(capped)).fraction.value == pytest.approx(0.9)
    assert placed(replace(product, sm_mhz=None), RoofSet(capped)).clock_scale == 1.0


@pytest.mark.parametrize(
    ("flops", "share", "scale"), [(0.8e12, 0.89, 0.9), (0.95e12, 1.0, 0.95), (1.1e12, 1.1, 1.0)]
)
def test_a_step_above_its_scaled_roof_had_a_higher_clock_than_was_read(flops, share, scale):
    """As products at the power limit; above the roof as it was measured no clock explains it."""
    roof = Ceiling(roof="matrix", kind="fp32", unit="", best=1e12, median=1e12, sm_mhz=2000.0)
    product = StepFacts(time_s=Estimate(value=1.0), flops=int(flops), sm_mhz=1800.0)
    point = placed(product, RoofSet([roof]))
    assert (point.fraction.value, point.clock_scale) == pytest.approx((share, scale), abs=2e-3)
