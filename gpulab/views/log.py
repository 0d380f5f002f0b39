"""What a scenario printed, and what its failures left."""

from __future__ import annotations

from rich.text import Text

from gpulab.model.state import RunState
from gpulab.views.text import Glyphs

_LIVE_LINES, _LIVE_WIDTH = 200, 200


def log(state: RunState, glyphs: Glyphs, *, live: bool = False) -> Text:
    """Every line that was kept, with the count of those that were not; the end of it while it still comes in."""
    text = Text()
    if live:
        lines = [line[:_LIVE_WIDTH] for part in state.log for line in part.lines]
        text.append(glyphs("".join(f"{line}\n" for line in lines[-_LIVE_LINES:])))
        return text if text else Text("nothing printed so far", "dim")
    for part in state.log:
        if part.skipped:
            text.append(f"... {part.skipped:,} lines left out ...\n", "dim")
        text.append(glyphs("".join(f"{line}\n" for line in part.lines)))
    for failure in state.failures:
        text.append(glyphs(f"{failure.variant or 'the run'}: {failure.kind}, {failure.message}\n"), "red")
        text.append(glyphs(failure.traceback), "dim")
    return text if text else Text("it printed nothing", "dim")
