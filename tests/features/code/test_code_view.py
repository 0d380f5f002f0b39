"""The code of variants: what differs is marked, what failed says where, and anything may stand in a
file.
"""

import pytest
from conftest import printed
from found import finding
from run_reports import run, variant

from gpulab.core.events import VariantFailed
from gpulab.core.statuses import FailureKind, Stage
from gpulab.features.code.view import code_view
from gpulab.report.report import Time

SOURCE = '''"""A lesson."""
import torch
from gpulab import Scenario, Work

scenario = Scenario("x")


def _shared():
    return torch.ones(3)


@scenario.variant
def old(lab):
    """Doubled."""
    x = _shared()
    return Work(lambda: x * 2)


@scenario.variant
def new(lab):
    """Added."""
    x = _shared()
    return Work(lambda: x + x)
'''
NAMES = ("old", "new")


def lines_of(source=SOURCE, names=NAMES, report=None, ascii_only=False, width=80):
    return [
        line.rstrip()
        for line in printed(
            code_view(source, names, report, width), width, ascii_only=ascii_only
        ).splitlines()
    ]


def test_lines_that_differ_are_marked_and_shared_ones_are_not():
    lines = lines_of()
    assert "  15       x = _shared()" in lines
    assert "  16 -     return Work(lambda: x * 2)" in lines
    assert "  22       x = _shared()" in lines
    assert "  23 +     return Work(lambda: x + x)" in lines
    assert lines[0].startswith("── old · the baseline ──")
    assert not any("return torch.ones" in line for line in lines), (
        "what variants share is not theirs"
    )


def test_what_was_measured_stands_beside_the_names():
    report = run(variant("old", time_s=Time(median=1e-3, low=0.9e-3, high=1.1e-3)), variant("new"))
    assert "1.00 ms ±10.0%" in lines_of(report=report)[0]


def test_the_line_that_failed_has_the_message():
    (line,) = [line for line in failed_at(23) if line.startswith("  23")]
    assert "◀ " in line
    assert "boom" in line


def failed_at(number, source=SOURCE, width=100):
    cause = finding("raised", "new", message="ValueError: boom")
    failure = VariantFailed(
        variant="new", kind=FailureKind.ERROR, stage=Stage.CHECK, cause=cause, line=number
    )
    report = run(variant("old"), variant("new"), failures=[failure])
    return lines_of(source, report=report, width=width)


def test_a_line_that_failed_in_a_helper_is_shown_too():
    lines = failed_at(9)
    heading = next(
        place for place, line in enumerate(lines) if "line 9, outside of the variants" in line
    )
    assert any(
        line.startswith("   9       return torch.ones(3)") and "boom" in line
        for line in lines[heading:]
    )
    assert not any("outside of the variants" in line for line in failed_at(23))
    assert any("line 2, outside" in line for line in failed_at(2))


def test_a_message_without_room_beside_its_line_stands_below_it():
    lines = failed_at(23, SOURCE.replace("x + x", "x + x + " + "y" * 60), width=80)
    place = next(place for place, line in enumerate(lines) if line.startswith("  23"))
    assert "boom" in lines[place + 1]


def test_every_line_is_as_long_as_there_is_room_in_ascii_too():
    long = SOURCE.replace("x * 2", "x * 2 + " + "µ" * 200)
    for ascii_only in (False, True):
        lines = lines_of(long, ascii_only=ascii_only, width=60)
        assert all(len(line) <= 60 for line in lines)
        assert not ascii_only or all(line.isascii() for line in lines)


@pytest.mark.parametrize(
    "source", ["", "def old(:\n", "x = 1\n", "def old(lab): \x1b[31mred\n", "\0"]
)
def test_a_file_without_the_functions_is_shown_as_it_is(source):
    text = "".join(lines_of(source))
    assert "\x1b" not in text
    assert "old" in text or not source.strip("\0") or "x = 1" in text or "cannot be read" in text


HELPED = '''"""A lesson."""
from gpulab import Scenario, Work

scenario = Scenario("x")
try:
    import fast
except ImportError:
    fast = None


@scenario.variant
def old(lab):
    return _work(lab, _doubled)


@scenario.variant
def new(lab):
    return _work(lab, _added)


@scenario.variant
def newest(lab):
    return _work(lab, _added)


def _doubled(x):
    return x * 2


if fast is not None:

    @fast.jit
    def _added(x):
        return x + x


def _work(lab, function):
    x = lab.ones(3)
    return Work(lambda: function(x))
'''


def test_helpers_of_some_variants_stand_below_the_first_of_them():
    lines = lines_of(HELPED, ("old", "new", "newest"))
    old, new, newest = (
        next(place for place, line in enumerate(lines) if f"── {name} " in line) for name in HEADS
    )
    assert "  26 - def _doubled(x):" in lines[old:new]
    assert [
        line for line in lines[new:newest] if line[:4].strip().isdigit() and int(line[:4]) > 30
    ] == [
        "  32 + @fast.jit",
        "  33 + def _added(x):",
        "  34 +     return x + x",
    ]
    assert "       _added: above" in lines[newest:]
    assert not any("x = lab.ones" in line for line in lines), "all variants call it"
    assert f"; {len(HELPED.splitlines()) - 14} more lines of the file are shared" in " ".join(
        lines[-2:]
    )


HEADS = ("old", "new", "newest")


def test_a_line_that_failed_in_a_shown_helper_has_the_message_there():
    lines = failed_at(34, HELPED)
    assert any(line.startswith("  34 +     return x + x") and "boom" in line for line in lines)
    assert not any("outside of the variants" in line for line in lines)
