"""Interval algebra against sets of unit cells on a small grid: nested, overlapping, touching,
empty.
"""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gpulab.stats.time_spans import clip, contains, innermost, intersect, measure, subtract, union

GRID = 24
POINTS = st.integers(0, GRID)
SPANS = st.lists(
    st.builds(lambda start, length: (start, min(GRID, start + length)), POINTS, st.integers(0, 9)),
    max_size=12,
)


def cells(spans):
    return {cell for start, end in spans for cell in range(start, end)}


def is_normal(spans):
    return all(start < end for start, end in spans) and all(
        before[1] < after[0] for before, after in pairwise(spans)
    )


def is_disjoint(spans):
    return all(start < end for start, end in spans) and all(
        before[1] <= after[0] for before, after in pairwise(spans)
    )


@given(SPANS)
def test_union(spans):
    assert cells(union(spans)) == cells(spans)
    assert is_normal(union(spans))
    assert union(union(spans)) == union(spans)
    assert measure(union(spans)) == len(cells(spans))


@given(SPANS, SPANS)
def test_intersect(a, b):
    instants = intersect(union(a), union(b))
    assert cells(instants) == cells(a) & cells(b)
    assert is_normal(instants)


@given(SPANS, SPANS)
def test_subtract(a, b):
    instants = subtract(union(a), union(b))
    assert cells(instants) == cells(a) - cells(b)
    assert is_normal(instants)


@given(SPANS, SPANS)
def test_difference_and_intersection_make_the_whole(a, b):
    whole = union(a)
    assert measure(subtract(whole, union(b))) + measure(intersect(whole, union(b))) == measure(
        whole
    )


@given(SPANS, POINTS, POINTS)
def test_clip(spans, start, end):
    instants = clip(union(spans), start, end)
    assert cells(instants) == cells(spans) & set(range(start, end))
    assert is_normal(instants)


@given(SPANS, POINTS)
def test_contains(spans, instant):
    assert contains(union(spans), instant) == (instant in cells(spans))
    assert contains(union(spans), instant + 0.5) == (instant in cells(spans))


@given(SPANS)
def test_innermost(spans):
    """By asking every cell for the span around it that began last, then is shortest, then is later
    in the list.
    """
    expected = {}
    for cell in range(GRID):
        here = [
            (start, start - end, i) for i, (start, end) in enumerate(spans) if start <= cell < end
        ]
        if here:
            expected[cell] = max(here)[2]
    pieces = innermost(spans)
    assert {cell: index for start, end, index in pieces for cell in range(start, end)} == expected
    assert is_disjoint([(start, end) for start, end, _ in pieces])


@given(st.lists(st.tuples(st.floats(0, 1e3), st.floats(0, 1e3)), max_size=30))
def test_innermost_spans_and_their_union_measure_the_same(spans):
    total = sum(end - start for start, end, _ in innermost(spans))
    assert abs(total - measure(union(spans))) < 1e-9


def test_empty_lists_and_empty_spans():
    assert (
        union([])
        == union([(1, 1), (3, 2)])
        == intersect([], [(0, 1)])
        == subtract([], [(0, 1)])
        == []
    )
    assert measure([]) == 0
    assert innermost([(2, 2)]) == []
