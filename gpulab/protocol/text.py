"""Text from scenarios, made safe to show: nothing in it may drive a terminal."""

from __future__ import annotations

import re

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_]|[ -/]+[0-~])?")
_CONTROLS = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}


def plain(text: str) -> str:
    """The text without escape sequences; control characters other than tab and newline are replaced."""
    return _ESCAPES.sub("", text).translate(_CONTROLS)
