"""Ceilings from timings, which of them are believed, and what datasheets say of which device."""

import pytest
from devices import H200
from found import finding
from hypothesis import given
from hypothesis import strategies as st

from gpulab.core.machine import Device
from gpulab.core.payloads import DATASHEET, DERIVED, MATRIX, MEASURED, MEMORY, VECTOR, family
from gpulab.features.roofline.ceilings import RoofSet, ceiling_from, nominal_ceilings
from gpulab.features.roofline.events import Ceiling
from gpulab.scenario import GiB


def ceiling(roof, kind, best, *, source=MEASURED, median=None):
    return Ceiling(
        roof=roof, kind=kind, unit="B/s", best=best, median=median or best, source=source
    )


def test_a_ceiling_is_the_best_of_its_timings_with_their_median_and_spread():
    rate = ceiling_from(MEMORY, "copy", 100, [1.0, 2.0, 4.0, 5.0])
    assert (rate.best, rate.unit, rate.samples) == (100.0, "B/s", 4)
    assert rate.median == pytest.approx((50 + 25) / 2)
    assert rate.spread > 0
    cost = ceiling_from("launch", "enqueue", 0, [3e-6, 2e-6, 4e-6])
    assert (cost.best, cost.median, cost.unit) == (2e-6, 3e-6, "s")
    method = finding("product", size=256)
    product = ceiling_from(MATRIX, "fp32", 10, [1.0], method=method, sm_mhz=1980.0)
    assert (product.unit, product.method, product.sm_mhz) == ("FLOP/s", method, 1980.0)


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=40), st.integers(1, 10**12))
def test_best_is_never_below_the_median_of_a_rate_nor_above_that_of_a_time(times, amount):
    rate = ceiling_from(MEMORY, "copy", amount, times)
    assert rate.best >= rate.median > 0
    assert rate.spread >= 0
    cost = ceiling_from("launch", "enqueue", 0, times)
    assert cost.best <= cost.median


def test_an_unsteady_ceiling_is_rejected_and_the_next_source_is_taken():
    lucky = ceiling(MEMORY, "copy", 100.0, median=60.0)
    sheet = ceiling(MEMORY, "", 80.0, source=DATASHEET)
    assert not lucky.steady
    assert ceiling(MEMORY, "copy", 100.0, median=67.0).steady
    assert RoofSet([lucky, sheet]).best(MEMORY) is sheet
    assert RoofSet([lucky]).best(MEMORY) is None
    assert RoofSet([lucky, sheet]).unsteady() == [lucky]
    read, derived = ceiling(MEMORY, "read", 70.0), ceiling(MEMORY, "", 90.0, source=DERIVED)
    # measured before derived before datasheet
    assert RoofSet([lucky, read, derived, sheet]).best(MEMORY) is read
    assert RoofSet([lucky, derived, sheet]).best(MEMORY) is derived


def test_the_slowest_stream_is_of_those_measured_and_steady():
    lucky, copy = ceiling(MEMORY, "read", 30.0, median=10.0), ceiling(MEMORY, "copy", 50.0)
    sheet, cached = ceiling(MEMORY, "", 20.0, source=DATASHEET), ceiling("cache", "read", 10.0)
    update = ceiling(MEMORY, "update", 70.0)
    slowest = RoofSet([lucky, update, copy, sheet, cached]).slowest_stream()
    assert slowest == ("copy", 50 / 70)
    assert RoofSet([lucky, sheet]).slowest_stream() == ("", 1.0)
    # The machine is twice as slow during the run, and so would its copy be.
    beside = Ceiling(roof=MEMORY, kind="update", unit="", best=35.0, median=35.0, processes=8)
    assert RoofSet([beside, update, copy]).slowest_stream() == slowest


def test_a_launch_costs_what_its_clock_measures_however_unsteady():
    enqueue, spacing = (
        ceiling("launch", "enqueue", 2e-6, median=9e-6),
        ceiling("launch", "spacing", 1e-6),
    )
    roofs = RoofSet([enqueue, spacing])
    assert (roofs.cost("launch"), roofs.cost("page fault")) == (enqueue, None)
    fault = ceiling("page fault", "", 5e-7)
    assert RoofSet([fault]).cost("page fault") is fault
    assert RoofSet([spacing]).cost("launch") is None
    assert roofs.unsteady() == []  # it is between its ends


def test_the_roof_of_arithmetic_is_the_higher_one_of_the_dtype():
    matrix, vector = ceiling(MATRIX, "fp32", 51.0), ceiling(VECTOR, "fp32", 63.0)
    roofs = RoofSet([matrix, vector, ceiling(MATRIX, "bf16", 800.0)])
    assert roofs.compute("fp32") is vector
    assert roofs.compute(None) is vector
    assert roofs.compute("bf16").best == 800.0
    assert roofs.compute("fp8") is None
    assert [family(name) for name in ("fp16", "bf16", None, "tf32")] == [
        "fp16/bf16",
        "fp16/bf16",
        "fp32",
        "tf32",
    ]


def test_the_ends_of_a_ceiling_are_those_of_the_exact_interval_of_its_median():
    measured = ceiling_from(MEMORY, "copy", 100, [1 / value for value in range(50, 101)])
    assert (measured.best, measured.median, *measured.ends) == pytest.approx(
        (10000.0, 7500.0, 6500.0, 8500.0)
    )
    slow, lucky = [1 / 1.54, *[1 / 101] * 100], [1 / 500, *[1 / 101] * 100]
    for times in (slow, lucky):
        assert ceiling_from(MEMORY, "copy", 1, times).ends == pytest.approx((101.0, 101.0))
    assert ceiling(MEMORY, "copy", 50.0, median=45.0).ends == (45.0, 50.0)  # of an earlier version


@pytest.mark.parametrize(
    ("name", "memory_gib", "gb_s"),
    [
        ("Tesla V100-SXM2-16GB", 16, 900),
        ("Tesla T4", 15, 320),
        ("NVIDIA L40S", 45, 864),
        ("NVIDIA A100-SXM4-40GB", 40, 1555),
        ("NVIDIA A100-SXM4-80GB", 80, 2039),
        ("NVIDIA GeForce RTX 4090", 24, 1008),
        ("NVIDIA H100 80GB HBM3", 80, 3350),
        ("NVIDIA H200", 140, 4800),
        ("NVIDIA GH200 480GB", 95, 4000),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 16, None),
        ("NVIDIA GeForce RTX 3090 Ti", 24, None),
        ("NVIDIA L40", 45, None),
        ("NVIDIA T400", 4, None),
        ("AMD EPYC", 24, None),
    ],
)
def test_a_datasheet_is_taken_for_the_very_product_and_no_other(name, memory_gib, gb_s):
    device = Device(kind="cuda", name=name, memory_bytes=int(memory_gib * GiB))
    sheets = [sheet for sheet in nominal_ceilings(device) if sheet.source == DATASHEET]
    assert [sheet.best for sheet in sheets if sheet.roof == MEMORY] == (
        [] if gb_s is None else [gb_s * 1e9]
    )
    assert {sheet.method.code for sheet in sheets} <= {"datasheet"}


def test_an_h200_is_derived_from_its_clocks_and_widths():
    derived = {
        ceiling.key: ceiling for ceiling in nominal_ceilings(H200) if ceiling.source == DERIVED
    }
    assert derived[MEMORY, ""].best == pytest.approx(4.814e12, rel=1e-3)
    assert derived[VECTOR, "fp32"].best == pytest.approx(66.9e12, rel=1e-3)
    assert derived[MATRIX, "bf16"].best == pytest.approx(1.0706e15, rel=1e-3)
    # a rate without its clock says nothing
    assert derived[MATRIX, "bf16"].method.values["mhz"] == 1980
    assert derived[MEMORY, ""].method.values == {"mhz": 3201, "transfers": 2, "bits": 6016}
