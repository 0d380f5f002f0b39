"""The roofline: what it looks like, and what holds for every set of ceilings and points.

GPULAB_GOLDEN=1 pytest tests/views/test_roofline.py     # draws the golden files anew
"""

import os
from dataclasses import replace
from math import log10
from pathlib import Path

import msgspec
import pytest
from conftest import printed
from rooflines import CPU, H200, ceiling, cpu, h200, point

from gpulab.model.ceilings import DATASHEET, DERIVED, MATRIX, MEMORY, VECTOR, Roofs
from gpulab.model.roofline import Roofline
from gpulab.views.roofline.axes import THIRDS, axes, decade, house
from gpulab.views.roofline.placing import BADGE, CEILING, HEAD, POINT
from gpulab.views.roofline.view import families, layout, roofline
from gpulab.views.text import Glyphs

GOLDEN = Path(__file__).parent / "golden"
SIZES = ((80, 24), (120, 40), (200, 50))
UNICODE, ASCII = Glyphs(), Glyphs(ascii=True)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("of", [h200, cpu], ids=lambda of: of.__name__)
def test_it_looks_as_it_did(of, size, glyphs):
    width, height = size
    path = GOLDEN / f"roofline_{of.__name__}_{width}x{height}_{'ascii' if glyphs.ascii else 'unicode'}.txt"
    found = roofline(of(), glyphs, width=width, height=height).plain + "\n"
    if os.environ.get("GPULAB_GOLDEN"):
        path.write_text(found)
    assert found == path.read_text()


def test_rich_prints_it_as_it_is():
    for width, height in SIZES:
        text = roofline(h200(), UNICODE, width=width, height=height)
        assert [line.rstrip() for line in printed(text, width).split("\n")[:-1]] == text.plain.split("\n")


def test_at_80x24_eight_points_fit():
    assert layout(h200(), UNICODE, width=80, height=24).height == 24
    assert layout(h200(), UNICODE, width=120, height=40).height == 40


def test_more_points_than_the_height_has_lines_keep_a_plot():
    many = replace(h200(), points=h200().points * 8)
    found = layout(many, UNICODE, width=80, height=24)
    assert found.plot.axes.rows == 10
    assert "*" in roofline(many, UNICODE, width=80, height=24).plain


def test_axes_come_from_ceilings():
    found = axes(house(CPU, "fp32"), 75, 30)
    assert (found.left, found.right, found.bottom, found.top) == (-2, 3, 7, 12)
    found = axes(house(H200, "fp16/bf16"), 75, 30)
    assert (found.left, found.right, found.bottom, found.top) == (-2, 5, 9, 15)
    one, other = h200(), replace(h200(), points=h200().points[:1])
    assert (
        layout(one, UNICODE, width=120, height=40).plot.axes.top
        == layout(other, UNICODE, width=120, height=40).plot.axes.top
    )


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("intensity", [0.05, 0.3, 1.0, 3.0, 30.0, 300.0])
def test_the_roof_is_where_it_must_be(intensity, glyphs):
    of = Roofline([one for one in CPU if one.roof in (MEMORY, MATRIX)])
    found = layout(of, glyphs, width=200, height=50).plot
    attainable = min(104e9, 31.5e9 * intensity)
    column = found.axes.column(intensity)
    middle = min(104e9, 31.5e9 * found.axes.intensity(column))
    rows = [row for row, at in found.lines if at == column]
    assert found.axes.row(middle) in rows
    assert max(abs(row - found.axes.row(attainable)) for row in rows) <= 1
    if glyphs.ascii:
        third = found.axes.level(middle) % THIRDS
        assert found.lines[found.axes.row(middle), column][0] == '_-"'[third]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_ten_times_faster_is_a_decade_higher(width, height):
    slow = point(CPU, "slow", 0.9, flops=10**9, bytes=10**9)
    fast = point(CPU, "fast", 0.09, flops=10**9, bytes=10**9)
    found = layout(Roofline(CPU, [slow, fast]), UNICODE, width=width, height=height).plot
    rows = {one.points: one.row for one in found.of(POINT)}
    ticks = {label: row for row, label in found.axes.ticks()[1].items()}
    assert rows[0,] - rows[1,] == pytest.approx(found.axes.per_decade[1], abs=1)
    assert ticks["1G"] - ticks["10G"] == pytest.approx(found.axes.per_decade[1], abs=1)
    assert abs(rows[1,] - ticks["10G"]) <= 1


def test_points_of_one_cell_are_counted_and_named():
    found = layout(h200(), UNICODE, width=80, height=24)
    (both,) = [one for one in found.plot.of(POINT) if len(one.points) > 1]
    assert (both.text, both.points) == ("2", (2, 3))
    assert "2 at one place: C,D" in found.notes[0]
    dozen = Roofline(CPU, [point(CPU, "same", 0.9, flops=10**9, bytes=10**9)] * 12)
    (all_of_them,) = layout(dozen, UNICODE, width=80, height=24).plot.of(POINT)
    assert all_of_them.text == "+"


@pytest.mark.parametrize(
    ("intensity", "rate", "text"),
    [(1e-4, 1e10, "◂A"), (1e6, 1e10, "A▸"), (1.0, 1e16, "A▲"), (1.0, 1.0, "A▼"), (1e6, 1e16, "A▸")],
)
def test_off_the_frame_there_is_a_badge(intensity, rate, text):
    one = msgspec.structs.replace(cpu().points[0], intensity=intensity, rate=rate)
    found = layout(Roofline(CPU, [one]), UNICODE, width=80, height=24).plot
    (badge,) = found.of(BADGE)
    assert badge.text == text
    assert badge.row in (0, found.axes.rows - 1) or badge.column in (0, found.axes.columns - 2)
    in_ascii = layout(Roofline(CPU, [one]), ASCII, width=80, height=24).plot.of(BADGE)[0].text
    assert in_ascii == text.translate(str.maketrans("◂▸▲▼", "<>^v"))


def test_other_families_are_dim_and_only_inside():
    found = layout(h200(), UNICODE, width=80, height=24, family="fp32").plot
    styles = {index: one.style for one in found.of(POINT) for index in one.points}
    assert styles[4] == "bold"
    assert styles[0] == "dim"
    assert 2 in styles  # above fp32's roof, but in the frame
    assert 6 not in {index for one in found.of(BADGE) for index in one.points}
    assert families(h200()) == ["fp16/bf16", "fp32"]


def test_arrows_lead_from_before_to_after():
    found = layout(cpu(), UNICODE, width=200, height=50).plot
    heads = found.of(HEAD)
    at = {one.points[0]: one for one in found.of(POINT)}
    assert len(heads) == 3
    for head, target in zip(heads, (1, 2, 3), strict=True):
        assert max(abs(head.row - at[target].row), abs(head.column - at[target].column)) == 1
    assert any(glyph == "∙" for glyph, _ in found.lines.values())
    no_place = replace(h200(), arrows=((0, 5), (5, 0), (0, 0), (2, 3)))
    assert layout(no_place, UNICODE, width=200, height=50).plot.of(HEAD) == []


def test_what_has_no_intensity_gets_a_bar():
    found = roofline(h200(), UNICODE, width=80, height=24).plain
    assert "████████░    86 %" in found
    assert "no FLOP/byte: F" in found
    assert "########.    86 %" in roofline(h200(), ASCII, width=80, height=24).plain
    over = msgspec.structs.replace(h200().points[5], fraction=1.37)
    assert "█████████  137 %" in roofline(Roofline(H200, [over]), UNICODE, width=80, height=24).plain


def test_a_roof_that_was_not_measured_is_marked():
    of = Roofline([msgspec.structs.replace(one, source=DATASHEET) for one in CPU])
    one = point(of.ceilings, "mm", 0.0214, flops=2 * 1024**3, bytes=3 * 4 * 1024**2)
    text = roofline(replace(of, points=[one]), UNICODE, width=80, height=24).plain
    assert "±1.0*" in text
    assert "* roof: datasheet" in text
    assert "104 GFLOP/s fp32 matrix (datasheet)" in text
    assert "*" not in roofline(cpu(), UNICODE, width=80, height=24).plain


def test_a_datasheet_far_from_what_was_measured_is_a_line_of_its_own():
    far = [
        *CPU,
        ceiling(MATRIX, "fp32", 900e9, source=DATASHEET),
        ceiling(MEMORY, "", 200e9, unit="B/s", source=DATASHEET),
    ]
    found = layout(Roofline(far), UNICODE, width=200, height=50).plot
    told = {one.text: one.style for one in found.of(CEILING)}
    assert told["900 GFLOP/s fp32 matrix (datasheet)"] == told["200 GB/s device memory (datasheet)"] == "dim"
    assert ("·", "dim") in [found.lines.get((found.axes.row(900e9), column)) for column in range(found.axes.columns)]
    assert found.untold == []


def test_a_datasheet_near_to_what_was_measured_is_in_its_label_or_in_a_note():
    wide = layout(h200(), UNICODE, width=200, height=50)
    labels = {one.text for one in wide.plot.of(CEILING)}
    assert "4.40 TB/s device memory (triad, derived 4.81 TB/s, datasheet 4.80 TB/s)" in labels
    assert "fp16 matrix: datasheet 989 TFLOP/s" in wide.notes[-1]  # its row is that of what is derived
    narrow = layout(h200(), UNICODE, width=120, height=40)
    assert "4.40 TB/s device memory (triad)" in {one.text for one in narrow.plot.of(CEILING)}
    assert "memory: derived 4.81 TB/s, datasheet 4.80 TB/s" in narrow.notes[-2]


def test_a_second_roof_of_arithmetic_in_the_row_of_the_first_is_told_in_a_note():
    notes = layout(h200(), UNICODE, width=80, height=24, family="fp32").notes
    assert any("fp32 matrix: measured 51.2 TFLOP/s" in note for note in notes)
    same = Roofline([*CPU, ceiling(VECTOR, "fp32", 104e9, source=DERIVED)])
    assert layout(same, UNICODE, width=80, height=24).notes == []  # of a CPU the one is taken for the other


def test_where_nothing_is_drawn_the_other_sources_are_told_too():
    copies = replace(h200(), points=h200().points[5:6], arrows=())
    text = " ".join(roofline(copies, UNICODE, width=80, height=24).plain.split())
    assert "roofs: device memory triad 4.40 TB/s (derived 4.81 TB/s, datasheet 4.80 TB/s)" in text


def test_two_flat_roofs_only_where_they_differ():
    assert [one.ceiling.roof for one in house(H200, "fp32").flats] == [VECTOR, MATRIX]
    assert [one.ceiling.kind for one in house(H200, "fp16/bf16").flats] == ["bf16"]
    close = layout(Roofline([*CPU, ceiling(VECTOR, "fp32", 100e9)]), UNICODE, width=200, height=50)
    assert not [one.text for one in close.plot.of(CEILING) if "vector" in one.text]
    assert close.notes == ["fp32 vector: measured 100 GFLOP/s"]
    assert house(CPU, "fp32").ridge == pytest.approx(104 / 31.5)


def test_without_ceilings_it_says_why_in_one_sentence():
    alone = roofline(Roofline(()), UNICODE, width=80, height=24).plain
    assert alone == "No roofline: no ceiling is known: gpulab --calibrate measures them."
    text = roofline(cpu(), UNICODE, width=80, height=24, family="fp8").plain
    assert text.startswith("No roofline: no ceiling is known of fp8 arithmetic: none was measured here.")
    assert "mm_bf16" in text
    shaky = [msgspec.structs.replace(one, median=one.best / 3) if one.roof == MEMORY else one for one in CPU]
    assert Roofs(shaky).unsteady()
    text = roofline(Roofline(shaky), UNICODE, width=80, height=24).plain
    assert text.startswith("No roofline: no ceiling is known of device memory: the machine was too unsteady")


def test_names_are_cut_and_numbers_are_not():
    text = roofline(h200(), UNICODE, width=60, height=40).plain
    assert "flash_with_a_very_long_name" not in text
    assert "509 TFLOP/s      2,048    65 % ±0.6  compute" in text
    narrow = roofline(h200(), UNICODE, width=40, height=40).plain
    assert "65 % ±0.6" in narrow
    assert "509 TFLOP/s" in narrow


def test_decades_have_short_names():
    assert [decade(power) for power in (-2, -1, 0, 1, 3, 5, 9, 12, 14, 15, 30)] == [
        *("0.01", "0.1", "1", "10", "1k", "100k", "1G", "1T", "100T", "1P", "1e30"),
    ]


def test_depth_and_rate_are_inverse():
    found = axes(house(CPU, "fp32"), 75, 30)
    for row in range(30):
        assert found.row(found.rate(row)) == row
    assert log10(found.intensity(found.columns - 1)) == pytest.approx(found.right)
