"""What holds for every roofline: nothing over anything else, every point shown, no line too wide."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rooflines import ceiling

from gpulab.model.ceilings import CACHE, DATASHEET, DERIVED, MATRIX, MEASURED, MEMORY, VECTOR
from gpulab.model.roofline import Point, Roofline
from gpulab.views.roofline.axes import house
from gpulab.views.roofline.canvas import cells
from gpulab.views.roofline.placing import BADGE, CEILING, NAME, POINT
from gpulab.views.roofline.plot import letter, on_plot
from gpulab.views.roofline.roofs import per_second
from gpulab.views.roofline.view import first_family, layout, roofline
from gpulab.views.text import Glyphs

UNICODE, ASCII = Glyphs(), Glyphs(ascii=True)
LEFT, TOP = 5, 1

names = st.one_of(
    st.text(max_size=30), st.sampled_from(["naive", "表面", "a\tb", "\x1b[31mred", "[bold]x", "é", "👩‍👧"])
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
        bound=draw(st.sampled_from(["memory", "compute", "launch", "latency", "cache", "link"])),
        why="",
        work=draw(st.sampled_from(["declared", "counted"])),
    )


@st.composite
def rooflines(draw):
    """Mostly with what a plot needs, often crowded, at times without a ceiling."""
    peak = draw(magnitudes)
    found = [ceiling(MEMORY, "triad", peak * 10 ** draw(st.floats(-4, 4)), unit="B/s")] * draw(
        st.sampled_from([1, 1, 0])
    )
    found += [ceiling(MATRIX, dtype, peak) for dtype in ("fp32", "bf16", draw(dtypes))]
    for _ in range(draw(st.integers(0, 4))):
        roof = draw(st.sampled_from([MEMORY, CACHE, MATRIX, VECTOR]))
        one = ceiling(roof, draw(dtypes), peak * 10 ** draw(st.floats(-2, 2)))
        found.append(msgspec.structs.replace(one, source=draw(st.sampled_from([MEASURED, DERIVED, DATASHEET]))))
    size = draw(st.sampled_from([8, 12, 4, 1, 0]))
    some = draw(st.lists(points(peak), min_size=size, max_size=size))
    if some and draw(st.booleans()):
        near = [msgspec.structs.replace(one, intensity=2.0, unit="FLOP/s", rate=peak / 3) for one in some[::2]]
        some += near
    index = st.integers(0, max(0, len(some) - 1))
    arrows = draw(st.lists(st.tuples(index, index), min_size=size // 2, max_size=6)) if some else []
    return Roofline(found, some, arrows)


drawn = given(
    of=rooflines(),
    width=st.integers(40, 210),
    height=st.integers(1, 60),
    glyphs=st.sampled_from([UNICODE, ASCII]),
    family=st.sampled_from([None, "fp32", "fp16/bf16"]),
)
enough = settings(max_examples=150, deadline=None)


@enough
@drawn
def test_no_text_touches_another(of, width, height, glyphs, family):
    found = layout(of, glyphs, width=width, height=height, family=family).plot
    if found is None:
        return
    taken = {}
    for one in found.placed:
        for cell in one.cells:
            assert cell not in taken, f"{one} over {taken[cell]}"
            assert found.inside(*cell)
            taken[cell] = one
    for one in found.of(CEILING, NAME):
        ends = (one.row, one.column - 1), (one.row, one.column + one.width)
        assert not [taken[cell] for cell in ends if cell in taken]


@enough
@drawn
def test_every_point_is_in_the_table_and_on_the_plot_where_it_can_be(of, width, height, glyphs, family):
    found = layout(of, glyphs, width=width, height=height, family=family)
    letters, _, *columns = found.table.columns
    assert list(letters.texts) == [letter(index) for index in range(len(of.points))]
    shares = next(column.texts for column in columns if column.head == "of roof")
    shown = roofline(of, glyphs, width=width, height=height, family=family).plain.split("\n")
    for index, share in enumerate(shares):
        line = shown[found.table_at[0] + 1 + index]
        assert letter(index) in line
        assert share.strip() in line
    if found.plot is None:
        return
    family = family or first_family(of)
    placed = [index for one in found.plot.of(POINT, BADGE) for index in one.points]
    assert len(placed) == len(set(placed))
    for index, one in enumerate(of.points):
        if index in placed:
            assert on_plot(one)
        elif on_plot(one) and one.family == family and len(of.points) < 6:
            pytest.fail(f"{letter(index)} is nowhere on the plot")


@enough
@drawn
def test_what_another_source_says_of_a_roof_is_in_a_label_or_in_a_note(of, width, height, glyphs, family):
    found = layout(of, glyphs, width=width, height=height, family=family)
    if found.plot is None:
        return
    told = " ".join(" ".join([*(one.text for one in found.plot.of(CEILING)), *found.notes]).split())
    under = house(of.ceilings, family or first_family(of))
    for other in [one for roof in (under.memory, under.cache, *under.flats) if roof for one in roof.others]:
        assert per_second(other.best, other.unit) in told


@enough
@drawn
def test_what_was_placed_can_be_read_within_the_width(of, width, height, glyphs, family):
    text = roofline(of, glyphs, width=width, height=height, family=family)
    found = layout(of, glyphs, width=width, height=height, family=family)
    shown = text.plain.split("\n")
    assert max(map(cell_len, shown)) <= width
    assert text.plain.isascii() or not glyphs.ascii
    assert len(shown) == found.height
    for one in found.plot.placed if found.plot else ():
        line = cells(shown[TOP + one.row], glyphs)
        start = LEFT + one.column
        assert "".join(line[start : start + one.width]).rstrip() == "".join(cells(one.text, glyphs)).rstrip()
