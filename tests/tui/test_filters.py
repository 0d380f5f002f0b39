"""The last look at every line of the screen: also at what Textual draws by itself, and no view has
made safe.
"""

import unicodedata

import pytest
from journey import until, visit
from recorded import run_file
from rich.cells import cell_len
from rich.segment import ControlType, Segment
from rich.text import Text
from textual.color import Color

from gpulab.session.run import FileSource
from gpulab.tui.driver import PlainFilter
from gpulab.tui.panels.pane import TextPane

HOSTILE = "x\x1b[31m\x9b1m\u202e\u2066\u200b\u2028\x07\n\u00ad\U000e0041 forged 宽"
BLACK = Color(0, 0, 0)


def visible(text):
    return all(mark.isprintable() or unicodedata.category(mark) == "Zs" for mark in text)


def test_a_segment_is_visible_and_as_wide_as_it_was():
    for text in (HOSTILE, *HOSTILE):
        (segment,) = PlainFilter().apply([Segment(text)], BLACK)
        assert visible(segment.text.replace("\n", ""))
        assert cell_len(segment.text) == cell_len(text)


def test_what_is_safe_and_what_drives_the_terminal_on_purpose_costs_nothing():
    segments = [Segment("│ a µ 宽 ▁▂"), Segment("\x1b[2J", None, [(ControlType.CLEAR,)])]
    assert all(
        new is old for new, old in zip(PlainFilter().apply(segments, BLACK), segments, strict=True)
    )


@pytest.mark.parametrize("ascii_only", [pytest.param(False, marks=pytest.mark.slow), True])
def test_whatever_a_widget_shows_has_been_looked_at(ascii_only, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from gpulab import Scenario\nscenario = Scenario()\n@scenario.variant\ndef a(lab): ...\n"
    )
    drawn = []

    def shown(pilot):
        """Whether it is drawn: until the screen shows something else there."""
        pilot.app.screen.query_one("#status", TextPane).show(Text(HOSTILE.replace("\n", "")))
        drawn[:] = [strip.text for strip in pilot.app.screen._compositor.render_strips()]
        return "forged" in "".join(drawn)

    def check():
        assert all(map(visible, drawn))
        assert "".join(drawn).isascii() == ascii_only

    async def journey(pilot):
        await until(pilot, lambda: shown(pilot))
        check()
        await pilot.press("r")
        await until(
            pilot, lambda: shown(pilot) and ("us" if ascii_only else "µs") in "".join(drawn)
        )
        check()

    recorded = FileSource(run_file("smoke", tmp_path))
    visit(journey, file, ascii_only=ascii_only, starter=lambda entry, settings: recorded)
