"""What holds for every roofline: nothing over anything else, every point shown, no line too
wide.
"""

import msgspec
import pytest
from found import finding
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rooflines import ceiling

from gpulab.core.payloads import CACHE, DATASHEET, DERIVED, MATRIX, MEASURED, MEMORY, VECTOR
from gpulab.core.statuses import BoundKind
from gpulab.draw.canvas import cells
from gpulab.draw.chart import letter_of
from gpulab.features.roofline.axes import BADGE, CEILING, NAME, POINT, family_roofs
from gpulab.features.roofline.bound import Point, Roofline
from gpulab.features.roofline.plot import per_second
from gpulab.features.roofline.view import first_family, layout_of, roofline_view

LEFT, TOP = 5, 1
NO_REASON = finding("unexplained")

names = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["naive", "表面", "a\tb", "\x1b[31mred", "[bold]x", "é", "👩‍👧"]),
)
dtypes = st.sampled_from(["fp32", "fp16", "bf16", "int8"])
magnitudes = st.floats(-3, 20).map(lambda power: 10.0**power)


@st.composite
def points(draw, peak):
    flops = draw(st.integers(0, 4)) > 0
    fraction = draw(st.one_of(st.floats(0, 2), st.floats(0, 1e6)))
    interval = draw(st.none() | st.just((fraction * 0.9, fraction * 1.2)))
    return Point(
        variant=draw(names),
        dtype=draw(dtypes),
        unit="FLOP/s" if flops else "B/s",
        rate=draw(st.just(0.0) | st.floats(-6, 1).map(lambda power: peak * 10.0**power)),
        intensity=draw(st.floats(-3, 5).map(lambda power: 10.0**power)) if flops else None,
        roof="device memory triad",
        source=draw(st.sampled_from([MEASURED, DATASHEET])),
        attainable=1e12,
        fraction=fraction,
        fraction_low=interval and interval[0],
        fraction_high=interval and interval[1],
        bound=draw(st.sampled_from(BoundKind)),
        reason=NO_REASON,
        bytes_ratio=draw(st.none() | st.floats(0, 100)) if flops else None,
    )


@st.composite
def rooflines(draw):
    """Mostly with what a plot needs, often crowded, at times without a ceiling."""
    peak = draw(magnitudes)
    memories = draw(st.sampled_from([1, 1, 0]))
    ceilings = [
        ceiling(MEMORY, "triad", peak * 10 ** draw(st.floats(-4, 4)), unit="B/s")
    ] * memories
    ceilings += [ceiling(MATRIX, dtype, peak) for dtype in ("fp32", "bf16", draw(dtypes))]
    for _ in range(draw(st.integers(0, 4))):
        roof = draw(st.sampled_from([MEMORY, CACHE, MATRIX, VECTOR]))
        other = ceiling(roof, draw(dtypes), peak * 10 ** draw(st.floats(-2, 2)))
        ceilings.append(
            msgspec.structs.replace(
                other, source=draw(st.sampled_from([MEASURED, DERIVED, DATASHEET]))
            )
        )
    size = draw(st.sampled_from([8, 12, 4, 1, 0]))
    variants = draw(st.lists(points(peak), min_size=size, max_size=size))
    if variants and draw(st.booleans()):
        variants += [
            msgspec.structs.replace(point, intensity=2.0, unit="FLOP/s", rate=peak / 3)
            for point in variants[::2]
        ]
    index = st.integers(0, max(0, len(variants) - 1))
    arrows = (
        draw(st.lists(st.tuples(index, index), min_size=size // 2, max_size=6)) if variants else []
    )
    return Roofline(ceilings, variants, arrows)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    roofline=rooflines(),
    width=st.integers(40, 210),
    height=st.integers(1, 60),
    family=st.sampled_from([None, "fp32", "fp16/bf16"]),
)
def test_everything_has_its_place_and_nothing_touches_another(roofline, width, height, family):
    layout = layout_of(roofline, width=width, height=height, family=family)
    text = roofline_view(roofline, width=width, height=height, family=family)
    shown = text.plain.split("\n")
    family = family or first_family(roofline)
    assert_points_are_in_the_table(roofline, layout, shown)
    assert max(map(cell_len, shown)) <= width
    assert len(shown) == layout.height
    if layout.plot is None:
        return
    assert_no_text_touches_another(layout.plot)
    assert_points_are_on_the_plot(roofline, layout.plot, family)
    assert_every_source_is_named(roofline, layout, family)
    assert_what_was_placed_can_be_read(layout.plot, shown)


def assert_no_text_touches_another(plot):
    taken = {}
    for placed in plot.placed:
        for cell in placed.cells:
            assert cell not in taken, f"{placed} over {taken[cell]}"
            assert plot.inside(*cell)
            taken[cell] = placed
    for label in plot.of_kinds(CEILING, NAME):
        ends = (label.row, label.column - 1), (label.row, label.column + label.width)
        assert not [taken[cell] for cell in ends if cell in taken]


def assert_points_are_in_the_table(roofline, layout, shown):
    letters, _, *columns = layout.table.columns
    assert list(letters.texts) == [letter_of(index) for index in range(len(roofline.points))]
    shares = next((column.texts for column in columns if column.head == "of roof"), ())
    assert len(shares) == len(roofline.points)
    for index, share in enumerate(shares):
        line = shown[layout.table_at[0] + 1 + index]
        assert letter_of(index) in line
        assert share.strip() in line


def assert_points_are_on_the_plot(roofline, plot, family):
    """Where they can be."""
    placed = [index for mark in plot.of_kinds(POINT, BADGE) for index in mark.points]
    assert len(placed) == len(set(placed))
    for index, point in enumerate(roofline.points):
        if index in placed:
            assert point.is_drawable
        elif point.is_drawable and point.family == family and len(roofline.points) < 6:
            pytest.fail(f"{letter_of(index)} is nowhere on the plot")


def assert_every_source_is_named(roofline, layout, family):
    """Every other source of a roof is in a label or in a note."""
    texts = [label.text for label in layout.plot.of_kinds(CEILING)]
    named = " ".join(" ".join([*texts, *layout.notes]).split())
    roofs = family_roofs(roofline.ceilings, family)
    for roof in filter(None, (roofs.memory, roofs.cache, *roofs.flats)):
        for other in roof.others:
            assert per_second(other.best, other.unit) in named


def assert_what_was_placed_can_be_read(plot, shown):
    for placed in plot.placed:
        line = cells(shown[TOP + placed.row])
        start = LEFT + placed.column
        in_text = "".join(line[start : start + placed.width])
        assert in_text.rstrip() == "".join(cells(placed.text)).rstrip()
