"""The roofline: what it looks like, and what holds for every set of ceilings and points.

GPULAB_GOLDEN=1 pytest tests/features/roofline/test_roofline.py     # draws the golden files anew
"""

import os
from dataclasses import replace
from math import log10
from pathlib import Path

import msgspec
import pytest
from conftest import printed
from rooflines import CPU, H200, ceiling, cpu, h200, point

from gpulab.core.payloads import DATASHEET, DERIVED, MATRIX, MEMORY, VECTOR
from gpulab.draw.ascii import to_ascii
from gpulab.features.roofline.axes import (
    BADGE,
    CEILING,
    HEAD,
    POINT,
    axes_for,
    decade,
    family_roofs,
)
from gpulab.features.roofline.bound import Roofline
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.view import families, layout_of, roofline_view

GOLDEN = Path(__file__).parent / "golden"
SIZES = ((80, 24), (120, 40), (200, 50))


@pytest.mark.parametrize("form", ["unicode", "ascii"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("roofline", [h200, cpu], ids=lambda roofline: roofline.__name__)
def test_it_looks_as_it_did(roofline, size, form):
    width, height = size
    path = GOLDEN / f"roofline_{roofline.__name__}_{width}x{height}_{form}.txt"
    drawn = roofline_view(roofline(), width=width, height=height).plain + "\n"
    drawn = to_ascii(drawn) if form == "ascii" else drawn
    if os.environ.get("GPULAB_GOLDEN"):
        path.write_text(drawn)
    assert drawn == path.read_text()


def test_rich_prints_it_as_it_is():
    for width, height in SIZES:
        text = roofline_view(h200(), width=width, height=height)
        assert [
            line.rstrip() for line in printed(text, width).split("\n")[:-1]
        ] == text.plain.split("\n")


def test_at_80x24_eight_points_fit():
    assert layout_of(h200(), width=80, height=24).height == 24
    assert layout_of(h200(), width=120, height=40).height == 40


def test_more_points_than_the_height_has_lines_keep_a_plot():
    many = replace(h200(), points=h200().points * 8)
    layout = layout_of(many, width=80, height=24)
    assert layout.plot.axes.rows == 10
    assert "*" in roofline_view(many, width=80, height=24).plain


def test_axes_come_from_ceilings():
    axes = axes_for(family_roofs(CPU, "fp32"), 75, 30)
    assert (axes.left, axes.right, axes.bottom, axes.top) == (-2, 3, 7, 12)
    axes = axes_for(family_roofs(H200, "fp16/bf16"), 75, 30)
    assert (axes.left, axes.right, axes.bottom, axes.top) == (-2, 5, 9, 15)
    tops = [
        layout_of(roofline, width=120, height=40).plot.axes.top
        for roofline in (h200(), replace(h200(), points=h200().points[:1]))
    ]
    assert tops[0] == tops[1]


@pytest.mark.parametrize("intensity", [0.05, 0.3, 1.0, 3.0, 30.0, 300.0])
def test_the_roof_is_where_it_must_be(intensity):
    roofline = Roofline([ceiling for ceiling in CPU if ceiling.roof in (MEMORY, MATRIX)])
    plot = layout_of(roofline, width=200, height=50).plot
    attainable = min(104e9, 31.5e9 * intensity)
    column = plot.axes.column(intensity)
    middle = min(104e9, 31.5e9 * plot.axes.intensity(column))
    rows = [row for row, line_column in plot.lines if line_column == column]
    assert plot.axes.row(middle) in rows
    assert max(abs(row - plot.axes.row(attainable)) for row in rows) <= 1


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_ten_times_faster_is_a_decade_higher(width, height):
    slow = point(CPU, "slow", 0.9, flops=10**9, bytes=10**9)
    fast = point(CPU, "fast", 0.09, flops=10**9, bytes=10**9)
    plot = layout_of(Roofline(CPU, [slow, fast]), width=width, height=height).plot
    rows = {mark.points: mark.row for mark in plot.of_kinds(POINT)}
    ticks = {label: row for row, label in plot.axes.ticks()[1].items()}
    assert rows[0,] - rows[1,] == pytest.approx(plot.axes.up.per_decade, abs=1)
    assert ticks["1G"] - ticks["10G"] == pytest.approx(plot.axes.up.per_decade, abs=1)
    assert abs(rows[1,] - ticks["10G"]) <= 1


def test_points_of_one_cell_are_counted_and_named():
    layout = layout_of(h200(), width=80, height=24)
    (both,) = [mark for mark in layout.plot.of_kinds(POINT) if len(mark.points) > 1]
    assert (both.text, both.points) == ("2", (2, 3))
    assert "2 at one place: C,D" in layout.notes[0]
    dozen = Roofline(CPU, [point(CPU, "same", 0.9, flops=10**9, bytes=10**9)] * 12)
    (all_of_them,) = layout_of(dozen, width=80, height=24).plot.of_kinds(POINT)
    assert all_of_them.text == "+"


@pytest.mark.parametrize(
    ("intensity", "rate", "text"),
    [(1e-4, 1e10, "◂A"), (1e6, 1e10, "A▸"), (1.0, 1e16, "A▲"), (1.0, 1.0, "A▼"), (1e6, 1e16, "A▸")],
)
def test_off_the_frame_there_is_a_badge(intensity, rate, text):
    far = msgspec.structs.replace(cpu().points[0], intensity=intensity, rate=rate)
    plot = layout_of(Roofline(CPU, [far]), width=80, height=24).plot
    (badge,) = plot.of_kinds(BADGE)
    assert badge.text == text
    assert badge.row in (0, plot.axes.rows - 1) or badge.column in (0, plot.axes.columns - 2)


def test_other_families_are_dim_and_only_inside():
    plot = layout_of(h200(), width=80, height=24, family="fp32").plot
    styles = {index: mark.style for mark in plot.of_kinds(POINT) for index in mark.points}
    assert styles[4] == "bold"
    assert styles[0] == "dim"
    assert 2 in styles  # above fp32's roof, but in the frame
    assert 6 not in {index for badge in plot.of_kinds(BADGE) for index in badge.points}
    assert families(h200()) == ["fp16/bf16", "fp32"]


def test_arrows_lead_from_before_to_after():
    plot = layout_of(cpu(), width=200, height=50).plot
    heads = plot.of_kinds(HEAD)
    marks = {mark.points[0]: mark for mark in plot.of_kinds(POINT)}
    assert len(heads) == 3
    for head, target in zip(heads, (1, 2, 3), strict=True):
        assert max(abs(head.row - marks[target].row), abs(head.column - marks[target].column)) == 1
    assert any(glyph == "∙" for glyph, _ in plot.lines.values())
    no_place = replace(h200(), arrows=((0, 5), (5, 0), (0, 0), (2, 3)))
    assert layout_of(no_place, width=200, height=50).plot.of_kinds(HEAD) == []


def test_two_flat_roofs_only_where_they_differ():
    assert [roof.ceiling.roof for roof in family_roofs(H200, "fp32").flats] == [VECTOR, MATRIX]
    assert [roof.ceiling.kind for roof in family_roofs(H200, "fp16/bf16").flats] == ["bf16"]
    close = layout_of(Roofline([*CPU, ceiling(VECTOR, "fp32", 100e9)]), width=200, height=50)
    assert not [label.text for label in close.plot.of_kinds(CEILING) if "vector" in label.text]
    assert close.notes == ["fp32 vector: measured 100 GFLOP/s"]
    assert family_roofs(CPU, "fp32").ridge == pytest.approx(104 / 31.5)


def test_a_datasheet_far_from_what_was_measured_is_a_line_of_its_own():
    far = [
        *CPU,
        ceiling(MATRIX, "fp32", 900e9, source=DATASHEET),
        ceiling(MEMORY, "", 200e9, unit="B/s", source=DATASHEET),
    ]
    plot = layout_of(Roofline(far), width=200, height=50).plot
    styles = {label.text: label.style for label in plot.of_kinds(CEILING)}
    assert (
        styles["900 GFLOP/s fp32 matrix (datasheet)"]
        == styles["200 GB/s device memory (datasheet)"]
        == "dim"
    )
    assert ("·", "dim") in [
        plot.lines.get((plot.axes.row(900e9), column)) for column in range(plot.axes.columns)
    ]
    assert plot.unlabelled == []


def test_a_datasheet_near_to_what_was_measured_is_in_its_label_or_in_a_note():
    wide = layout_of(h200(), width=200, height=50)
    labels = {label.text for label in wide.plot.of_kinds(CEILING)}
    assert "4.40 TB/s device memory (triad, derived 4.81 TB/s, datasheet 4.80 TB/s)" in labels
    # its row is that of what is derived
    assert "fp16 matrix: datasheet 989 TFLOP/s" in wide.notes[-1]
    narrow = layout_of(h200(), width=120, height=40)
    assert "4.40 TB/s device memory (triad)" in {
        label.text for label in narrow.plot.of_kinds(CEILING)
    }
    assert "memory: derived 4.81 TB/s, datasheet 4.80 TB/s" in narrow.notes[-2]


def test_a_second_roof_of_arithmetic_in_the_row_of_the_first_is_in_a_note():
    notes = layout_of(h200(), width=80, height=24, family="fp32").notes
    assert any("fp32 matrix: measured 51.2 TFLOP/s" in note for note in notes)
    same = Roofline([*CPU, ceiling(VECTOR, "fp32", 104e9, source=DERIVED)])
    # of a CPU the one is taken for the other
    assert layout_of(same, width=80, height=24).notes == []


def test_without_ceilings_one_sentence_says_so():
    alone = roofline_view(Roofline(()), width=80, height=24).plain
    assert alone == "No roofline: no ceiling is known; gpulab --calibrate measures them."
    text = roofline_view(cpu(), width=80, height=24, family="fp8").plain
    assert text.startswith(
        "No roofline: no ceiling is known of fp8 arithmetic: none was measured here."
    )
    assert "mm_bf16" in text
    unsteady = [
        msgspec.structs.replace(ceiling, median=ceiling.best / 3)
        if ceiling.roof == MEMORY
        else ceiling
        for ceiling in CPU
    ]
    assert RoofSet(unsteady).unsteady()
    text = roofline_view(Roofline(unsteady), width=80, height=24).plain
    assert text.startswith(
        "No roofline: no ceiling is known of device memory: the machine was too unsteady"
    )


def test_decades_have_short_names():
    assert [decade(power) for power in (-2, -1, 0, 1, 3, 5, 9, 12, 14, 15, 30)] == [
        *("0.01", "0.1", "1", "10", "1k", "100k", "1G", "1T", "100T", "1P", "1e30"),
    ]


def test_depth_and_rate_are_inverse():
    axes = axes_for(family_roofs(CPU, "fp32"), 75, 30)
    for row in range(30):
        assert axes.row(axes.rate(row)) == row
    assert log10(axes.intensity(axes.columns - 1)) == pytest.approx(axes.right)
