"""Ceilings from timings, which of them are believed, and what datasheets say of which device."""

import pytest
from devices import H200
from hypothesis import given
from hypothesis import strategies as st

from gpulab.model.ceilings import DATASHEET, DERIVED, MATRIX, MEMORY, VECTOR, Ceiling, Roofs, ceiling_of, family
from gpulab.model.datasheet import ceilings_of
from gpulab.model.request import Device
from gpulab.model.scenario import GiB


def one(roof, kind, best, *, source="measured", median=None):
    return Ceiling(roof=roof, kind=kind, unit="B/s", best=best, median=median or best, source=source)


def test_a_ceiling_is_the_best_of_its_timings_with_their_median_and_spread():
    found = ceiling_of(MEMORY, "copy", 100, [1.0, 2.0, 4.0, 5.0])
    assert (found.best, found.unit, found.samples) == (100.0, "B/s", 4)
    assert found.median == pytest.approx((50 + 25) / 2)
    assert found.spread > 0
    cost = ceiling_of("launch", "enqueue", 0, [3e-6, 2e-6, 4e-6])
    assert (cost.best, cost.median, cost.unit) == (2e-6, 3e-6, "s")
    assert ceiling_of(MATRIX, "fp32", 10, [1.0]).unit == "FLOP/s"


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=40), st.integers(1, 10**12))
def test_best_is_never_below_the_median_of_a_rate_nor_above_that_of_a_time(times, amount):
    rate = ceiling_of(MEMORY, "copy", amount, times)
    assert rate.best >= rate.median > 0
    assert rate.spread >= 0
    assert ceiling_of("launch", "enqueue", 0, times).best <= ceiling_of("launch", "enqueue", 0, times).median


def test_what_is_too_unsteady_is_rejected_and_the_next_source_is_taken():
    lucky = one(MEMORY, "copy", 100.0, median=60.0)
    sheet = one(MEMORY, "", 80.0, source=DATASHEET)
    assert not lucky.steady
    assert one(MEMORY, "copy", 100.0, median=67.0).steady
    assert Roofs([lucky, sheet]).best(MEMORY) is sheet
    assert Roofs([lucky]).best(MEMORY) is None
    assert Roofs([lucky, sheet]).unsteady() == [lucky]
    read, derived = one(MEMORY, "read", 70.0), one(MEMORY, "", 90.0, source=DERIVED)
    assert Roofs([lucky, read, derived, sheet]).best(MEMORY) is read  # measured before derived before datasheet


def test_the_roof_of_arithmetic_is_the_one_named_or_the_higher():
    matrix, vector = one(MATRIX, "fp32", 51.0), one(VECTOR, "fp32", 63.0)
    roofs = Roofs([matrix, vector, one(MATRIX, "bf16", 800.0)])
    assert roofs.compute("fp32") is vector
    assert roofs.compute(None) is vector
    assert roofs.compute("fp32", "matrix") is matrix
    assert roofs.compute("fp32", "vector") is vector
    assert roofs.compute("bf16", "vector").best == 800.0  # it has no such units
    assert roofs.compute("fp8") is None
    assert [family(name) for name in ("fp16", "bf16", None, "tf32")] == ["fp16/bf16", "fp16/bf16", "fp32", "tf32"]


@pytest.mark.parametrize(
    ("name", "memory_gib", "gb_s"),
    [
        ("Tesla V100-SXM2-16GB", 16, 900),
        ("Tesla T4", 15, 320),
        ("NVIDIA A100-SXM4-40GB", 40, 1555),
        ("NVIDIA A100-SXM4-80GB", 80, 2039),
        ("NVIDIA L4", 22, 300),
        ("NVIDIA L40S", 45, 864),
        ("NVIDIA GeForce RTX 4090", 24, 1008),
        ("NVIDIA H100 PCIe", 80, 2000),
        ("NVIDIA H100 80GB HBM3", 80, 3350),
        ("NVIDIA H200", 140, 4800),
        ("NVIDIA GH200 480GB", 95, 4000),
        ("NVIDIA GH200 144G HBM3e", 141, 4900),
        ("NVIDIA B200", 180, 8000),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 16, None),
        ("NVIDIA GeForce RTX 3090 Ti", 24, None),
        ("NVIDIA L40", 45, None),
        ("NVIDIA T400", 4, None),
        ("AMD EPYC", 24, None),
    ],
)
def test_a_datasheet_is_taken_for_the_very_product_and_no_other(name, memory_gib, gb_s):
    device = Device(kind="cuda", name=name, memory_bytes=int(memory_gib * GiB))
    found = [each.best for each in ceilings_of(device) if each.roof == MEMORY and each.source == DATASHEET]
    assert found == ([] if gb_s is None else [gb_s * 1e9])


def test_an_h200_is_derived_from_its_clocks_and_widths():
    found = {(each.roof, each.kind): each for each in ceilings_of(H200) if each.source == DERIVED}
    assert found[MEMORY, ""].best == pytest.approx(4.814e12, rel=1e-3)
    assert found[VECTOR, "fp32"].best == pytest.approx(66.9e12, rel=1e-3)
    assert found[MATRIX, "bf16"].best == pytest.approx(1.0706e15, rel=1e-3)
    assert "1980 MHz" in found[MATRIX, "bf16"].how  # a rate without its clock says nothing


def test_of_a_cpu_nothing_is_derived():
    assert ceilings_of(Device(kind="cpu", name="AMD EPYC")) == []
