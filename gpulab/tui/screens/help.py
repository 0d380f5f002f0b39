"""The keys, and the words that stand on the screen at that moment."""

from __future__ import annotations

from collections.abc import Mapping

from gpulab.session.run_files import at_home
from gpulab.tui.bindings import key_names
from gpulab.tui.keymap import keymap_path
from gpulab.tui.screens.page import Page
from gpulab.views.pages.glossary import help_view
from gpulab.views.text import Glyphs


def help_page(about: str, shown: str, keymap: Mapping[str, str], glyphs: Glyphs) -> Page:
    """For a screen that shows this text, and a user who put these keys in place of others."""
    keys = [("up, down", "choose a scenario, or scroll"), *key_names(keymap)]
    changed_by = f'{at_home(keymap_path())} changes them, with lines such as: run = "ctrl+r"; ids as in ctrl+p'
    return Page("keys and words", lambda width: help_view(about, shown, keys, changed_by, glyphs), glyphs)
