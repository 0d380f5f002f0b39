"""The keys, and the words that stand on the screen at that moment."""

from __future__ import annotations

from gpulab.tui.screens.page import Page
from gpulab.views.pages.glossary import help_view
from gpulab.views.text import Glyphs

_KEYS = (
    ("up, down", "choose a scenario, or scroll"),
    ("enter", "open it: its run, or its lesson"),
    ("r", "run it"),
    ("p", "predict how many times as fast it will be, then run"),
    ("e, y", "open the file in $EDITOR; copy the result"),
    ("s s", "stop what runs; what was measured stays"),
    ("1 to 5", "lesson, code, result, roofline, log"),
    ("esc", "back; it never stops a run"),
    ("/", "search names, lessons and code"),
    ("space", "in the list: pick a scenario; beside a run: freeze the view"),
    ("R", "run what was picked, one after the other"),
    ("tab, left, right", "choose a panel of the run"),
    ("z", "let that panel fill the screen"),
    ("f", "roofline: the next type of numbers"),
    ("h", "history: all runs of this machine; c compares two"),
    ("?, F1", "this help"),
    ("q", "quit; what runs is stopped"),
)


def help_page(shown: str, glyphs: Glyphs) -> Page:
    """For a screen that shows this text."""
    return Page("keys and words", lambda width: help_view(_KEYS, shown, glyphs), glyphs)
