"""Interval algebra against sets of unit cells on a small grid: nested, overlapping, touching, empty."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gpulab.model.intervals import clip, contains, innermost, intersect, measure, subtract, union

GRID = 24
points = st.integers(0, GRID)
some = st.lists(st.tuples(points, st.integers(0, 9)).map(lambda one: (one[0], min(GRID, one[0] + one[1]))), max_size=12)


def cells(spans):
    return {cell for start, end in spans for cell in range(start, end)}


def is_normal(spans):
    return all(start < end for start, end in spans) and all(before[1] < after[0] for before, after in pairwise(spans))


def is_disjoint(spans):
    return all(start < end for start, end in spans) and all(before[1] <= after[0] for before, after in pairwise(spans))


@given(some)
def test_union(spans):
    assert cells(union(spans)) == cells(spans)
    assert is_normal(union(spans))
    assert union(union(spans)) == union(spans)
    assert measure(union(spans)) == len(cells(spans))


@given(some, some)
def test_intersect(a, b):
    found = intersect(union(a), union(b))
    assert cells(found) == cells(a) & cells(b)
    assert is_normal(found)


@given(some, some)
def test_subtract(a, b):
    found = subtract(union(a), union(b))
    assert cells(found) == cells(a) - cells(b)
    assert is_normal(found)


@given(some, some)
def test_what_is_left_and_what_is_taken_make_the_whole(a, b):
    whole = union(a)
    assert measure(subtract(whole, union(b))) + measure(intersect(whole, union(b))) == measure(whole)


@given(some, points, points)
def test_clip(spans, start, end):
    found = clip(union(spans), start, end)
    assert cells(found) == cells(spans) & set(range(start, end))
    assert is_normal(found)


@given(some, points)
def test_contains(spans, instant):
    assert contains(union(spans), instant) == (instant in cells(spans))
    assert contains(union(spans), instant + 0.5) == (instant in cells(spans))


@given(some)
def test_innermost(spans):
    """By asking every cell for the span around it that began last, then is shortest, then is later in the list."""
    expected = {}
    for cell in range(GRID):
        here = [(start, start - end, i) for i, (start, end) in enumerate(spans) if start <= cell < end]
        if here:
            expected[cell] = max(here)[2]
    found = innermost(spans)
    assert {cell: index for start, end, index in found for cell in range(start, end)} == expected
    assert is_disjoint([(start, end) for start, end, _ in found])


@given(st.lists(st.tuples(st.floats(0, 1e3), st.floats(0, 1e3)), max_size=30))
def test_innermost_spans_and_their_union_measure_the_same(spans):
    total = sum(end - start for start, end, _ in innermost(spans))
    assert abs(total - measure(union(spans))) < 1e-9


def test_nothing():
    assert union([]) == union([(1, 1), (3, 2)]) == intersect([], [(0, 1)]) == subtract([], [(0, 1)]) == []
    assert measure([]) == 0
    assert innermost([(2, 2)]) == []
