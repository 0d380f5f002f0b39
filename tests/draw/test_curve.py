"""Filled curves: their heights, the gaps in them, and their ASCII form."""

from gpulab.draw.area import Area
from gpulab.draw.ascii import to_ascii
from gpulab.draw.blocks import styled_words
from gpulab.draw.canvas import Canvas
from gpulab.draw.curve import draw_curve


def drawn(shares, rows=1, **how):
    canvas = Canvas((len(shares) + 1) // 2, rows)
    draw_curve(Area(canvas, 0, 0, canvas.columns, rows), shares, **how)
    return canvas.text()


def test_two_values_share_a_cell_and_zero_is_seen():
    assert drawn([0, 0, 0.5, 0.5, 0.75, 1, 1, 1, 2, 9]).plain == "⣀⣤⣾⣿⣿"


def test_without_a_reading_there_is_a_gap():
    assert drawn([0, None, None, None, None, 0]).plain == "⡀ ⢀"


def test_a_full_curve_of_two_rows_does_not_touch_the_one_above():
    assert drawn([1, 1, 0.5, 0.5], rows=2).plain == "⣶\n⣿⣿"


def test_a_line_has_only_its_height():
    assert drawn([0.25, 0.25, 1, 1], filled=False).plain == "⣀⠉"


def test_its_colour_rises_with_the_value():
    assert [style for _, style in styled_words(drawn([0, 0, 0.5, 0, 1, 1]))] == [
        "blue",
        "bright_cyan",
        "bright_green",
    ]


def test_in_ascii_it_is_higher_where_it_is_higher():
    assert to_ascii(drawn([0, 0, 0.5, 0.5, 0.75, 0.75, 1, 1]).plain) == "_=*#"
