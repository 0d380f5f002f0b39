"""The table of a roofline's points: figures are never cut, names and bars give way, and what is not
drawn is said.
"""

from dataclasses import replace

import msgspec
import pytest
from found import finding
from rooflines import CPU, H200, cpu, h200, point

from gpulab.core.payloads import DATASHEET
from gpulab.core.statuses import BoundKind
from gpulab.features.roofline.bound import Roofline
from gpulab.features.roofline.view import reasons, roofline_view


def drawn(roofline, width=80, height=24):
    return roofline_view(roofline, width=width, height=height).plain


def row_of(text, letter):
    return next(line for line in text.splitlines() if line.startswith(f"{letter} "))


def test_what_has_no_intensity_gets_a_bar_beside_its_share_of_the_roof():
    text = drawn(h200())
    assert "86 % ±1.7  ███████▊░" in text
    assert "no FLOP/byte: F" in text
    over = msgspec.structs.replace(
        h200().points[5], fraction=1.37, fraction_low=1.353, fraction_high=1.387
    )
    assert "137 % ±1.7  █████████" in drawn(Roofline(H200, [over]))


def test_there_is_no_column_of_intensities_where_no_point_has_one():
    copies = replace(h200(), points=h200().points[5:6], arrows=())
    assert "FLOP/byte" not in drawn(copies).splitlines()[2]
    assert "FLOP/byte" in drawn(h200())


def test_a_bar_goes_before_names_become_too_short_to_be_read():
    text = drawn(h200(), 120, 40)
    assert "copy_only" in text
    assert "█" not in text
    assert "flash_with_a_…" in text


def test_names_are_cut_and_figures_are_not():
    text = drawn(h200(), 60, 40)
    assert "flash_with_a_very_long_name" not in text
    assert row_of(text, "D").split()[-7:] == [
        "509",
        "TFLOP/s",
        "2,048",
        "65",
        "%",
        "±1.3",
        "compute",
    ]
    narrow = drawn(h200(), 40, 40)
    assert "65 % ±1.3" in narrow
    assert "509 TFLOP/s" in narrow


def test_a_roof_that_was_not_measured_is_marked():
    nominal = [msgspec.structs.replace(ceiling, source=DATASHEET) for ceiling in CPU]
    product = point(nominal, "mm", 0.0214, flops=2 * 1024**3, bytes=3 * 4 * 1024**2)
    text = drawn(Roofline(nominal, [product]))
    assert "±2.0*" in text
    assert "* roof: datasheet" in text
    assert "104 GFLOP/s fp32 matrix (datasheet)" in text
    assert "*" not in drawn(cpu())


def test_where_nothing_is_drawn_a_line_has_the_roofs_of_every_source():
    copies = replace(h200(), points=h200().points[5:6], arrows=())
    text = " ".join(drawn(copies).split())
    assert "roofs: device memory triad 4.40 TB/s (derived 4.81 TB/s, datasheet 4.80 TB/s)" in text


@pytest.mark.parametrize(
    ("kind", "word"), [(BoundKind.CACHE, "cache-resident"), (BoundKind.LAUNCH, "launch-bound")]
)
def test_below_it_stands_what_limits_each_point_and_the_evidence(kind, word):
    changed = msgspec.structs.replace(
        cpu().points[0],
        bound=kind,
        reason=finding("unexplained", memory=0.125, arithmetic=0.5, dtype="fp32"),
    )
    text = reasons([cpu().points[1], changed]).plain
    expected = f"B ijk: {word}: 50% of the nearest roof (memory 12%, fp32 arithmetic 50%); cause not determined"
    assert text.splitlines()[1].startswith(expected)


def test_ends_that_are_not_alike_get_a_figure_each():
    """Of a power-capped product: its roof was measured in bursts."""
    burst = msgspec.structs.replace(
        h200().points[2], fraction=0.945, fraction_low=0.935, fraction_high=1.13
    )
    assert "94 % +18 -1.0" in drawn(Roofline(H200, [burst]))


def test_counted_bytes_that_differ_have_a_mark_of_their_own_and_a_legend():
    flash = msgspec.structs.replace(h200().points[2], bytes_ratio=4.0)
    assert "◦ counted bytes over declared: A 4.00x" in drawn(Roofline(H200, [flash]), 100)
    text = drawn(Roofline(H200, [flash, h200().points[5]]), 100)
    assert "◦ counted bytes over declared: A 4.00x" in text
    alike = msgspec.structs.replace(flash, bytes_ratio=None)
    assert "counted" not in drawn(Roofline(H200, [alike]), 100)
