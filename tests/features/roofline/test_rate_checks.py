"""No work is done faster than its roofs allow; whatever could excuse a rate does."""

from dataclasses import replace

import pytest

from gpulab.core.estimate import Estimate
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.events import Ceiling
from gpulab.features.roofline.physics import DeclaredWork, rate_checks

GIGA, TERA, MIB = 10**9, 10**12, 2**20


def ceiling(roof, kind, best, *, median=None, source="measured"):
    return Ceiling(roof=roof, kind=kind, unit="", best=best, median=median or best, source=source)


def up_to(seconds, high_s):
    """A time with the slow end of its interval, as far from it as the fast one."""
    return Estimate(value=seconds, low=high_s and 2 * seconds - high_s, high=high_s)


MEMORY, CACHE = ceiling("device memory", "update", 20 * GIGA), ceiling("cache", "update", 60 * GIGA)
ROOFS = RoofSet(
    [MEMORY, CACHE, ceiling("matrix", "fp32", 100 * GIGA), ceiling("matrix", "int8", 400 * GIGA)]
)
PRODUCT = DeclaredWork(time_s=up_to(1.0, 1.0), flops=100 * GIGA, dtype="fp32")
COPY = DeclaredWork(
    time_s=up_to(1.0, 1.0),
    bytes=20 * GIGA,
    dtype="fp32",
    distinct_bytes=20 * GIGA,
    cache_bytes=32 * MIB,
)


def possible(work, roofs=ROOFS):
    return [check.possible for check in rate_checks(work, roofs)]


@pytest.mark.parametrize(
    ("seconds", "high_s", "expected"),
    [
        (1.0, 1.0, True),
        (0.92, 0.93, True),
        (0.8, 0.95, True),  # its slow end is no more than the roof allows
        (0.8, 0.85, False),
        (1.4e-4, 1.5e-4, False),
        (0.6, None, True),  # too few values for an interval
        (0.4, None, False),
    ],
)
def test_the_whole_interval_of_a_rate_must_lie_above_the_roof(seconds, high_s, expected):
    assert possible(replace(PRODUCT, time_s=up_to(seconds, high_s))) == [expected]


def test_the_arithmetic_is_shown():
    (check,) = rate_checks(replace(PRODUCT, time_s=up_to(0.1, 0.11)), ROOFS)
    values = check.values
    assert (values["unit"], values["declared"], values["time_s"], values["roof"]) == (
        "FLOP",
        100 * GIGA,
        0.1,
        "matrix fp32",
    )
    assert (values["rate"], values["roof_rate"], check.ratio) == pytest.approx(
        (TERA, 100 * GIGA, 10.0)
    )


def test_roofs_that_were_not_measured_accuse_nobody_and_unsteady_ones_hardly():
    fast = replace(PRODUCT, time_s=up_to(0.1, 0.1))
    assert (
        possible(fast, RoofSet([ceiling("matrix", "fp32", 100 * GIGA, source="datasheet")])) == []
    )
    unsteady = RoofSet([ceiling("matrix", "fp32", 100 * GIGA, median=60 * GIGA)])
    assert possible(replace(fast, time_s=up_to(0.101, 0.11)), unsteady) == [True]
    # but far beyond all that was seen
    assert possible(replace(fast, time_s=up_to(0.05, 0.05)), unsteady) == [False]
    # The vector units that nobody measured may be faster than a library's product.
    derived = RoofSet(
        [
            ceiling("matrix", "fp32", 100 * GIGA),
            ceiling("vector", "fp32", 2 * TERA, source="derived"),
        ]
    )
    assert possible(fast, derived) == [True]


def test_the_most_that_was_ever_seen_of_a_roof_counts():
    """The roof of this run was measured in longer blocks than the variant's, on a machine that
    others use, too.
    """
    beside = Ceiling(
        roof="matrix",
        kind="fp32",
        unit="",
        best=4e10,
        median=4e10,
        median_low=3e10,
        median_high=5e10,
        processes=8,
    )
    assert possible(
        PRODUCT, RoofSet([beside, ceiling("matrix", "fp32", 100 * GIGA, median=30 * GIGA)])
    ) == [True]
    assert possible(PRODUCT, RoofSet([beside])) == [False]


def test_work_without_a_dtype_may_be_of_any():
    fast = replace(PRODUCT, dtype=None, time_s=up_to(0.25, 0.25))
    assert possible(fast) == [True]
    assert possible(replace(fast, time_s=up_to(0.2, 0.2))) == [False]


def test_products_that_are_made_of_products_in_another_dtype_may_be_faster_than_their_own_units():
    units = RoofSet([ceiling("matrix", "fp32", 50 * TERA), ceiling("matrix", "tf32", 400 * TERA)])
    assert possible(DeclaredWork(up_to(1.0, 1.0), flops=130 * TERA, dtype="fp32"), units) == [True]
    assert possible(DeclaredWork(up_to(1.0, 1.0), flops=150 * TERA, dtype="fp32"), units) == [False]
    inexact = DeclaredWork(up_to(1.0, 1.0), flops=60 * TERA, dtype="fp32", exact=False)
    assert possible(inexact, units) == [False]


def test_a_convolution_may_need_fewer_flops_than_are_declared():
    assert possible(replace(PRODUCT, time_s=up_to(0.3, 0.3))) == [False]
    assert possible(replace(PRODUCT, time_s=up_to(0.3, 0.3), fewer_flops=True)) == [True]


def test_bytes_come_from_memory_but_for_what_a_cache_can_have_kept():
    assert possible(replace(COPY, time_s=up_to(0.5, 0.5))) == [False, True]
    small = replace(COPY, bytes=32 * MIB, distinct_bytes=32 * MIB)
    assert possible(replace(small, time_s=up_to(6e-4, 6e-4))) == [True]  # out of the cache
    assert possible(replace(small, time_s=up_to(3e-4, 3e-4))) == [False]
    cold = replace(small, hot=False, time_s=up_to(6e-4, 6e-4))
    assert possible(cold) == [False, True]


def test_bytes_that_are_moved_again_and_again_may_all_be_cached():
    passes = replace(COPY, distinct_bytes=16 * MIB, time_s=up_to(0.4, 0.4))
    assert possible(passes) == [True]
    assert possible(replace(passes, distinct_bytes=None)) == [True]


def test_without_a_roof_of_the_cache_there_is_no_verdict_on_what_may_be_cached():
    roofs = RoofSet([MEMORY])
    assert (
        possible(replace(COPY, bytes=MIB, distinct_bytes=MIB, time_s=up_to(1e-6, 1e-6)), roofs)
        == []
    )
    assert possible(replace(COPY, distinct_bytes=None, time_s=up_to(0.01, 0.01)), roofs) == []


def test_a_nearer_cache_of_a_cpu_is_no_ten_times_as_fast_as_the_one_that_was_measured():
    at_roof_s = MIB / (60 * GIGA)
    tiny = replace(COPY, bytes=MIB, distinct_bytes=MIB)
    for times, expected in ((9, True), (11, False)):
        assert possible(replace(tiny, time_s=up_to(at_roof_s / times, at_roof_s / times))) == [
            expected
        ]
    assert possible(replace(tiny, on_gpu=True, time_s=up_to(at_roof_s / 9, at_roof_s / 9))) == [
        False
    ]
