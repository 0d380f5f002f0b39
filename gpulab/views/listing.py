"""The catalog as a list: topics, scenarios, what the machine lacks, and files that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from gpulab.model.listing import Row
from gpulab.model.result import INTERRUPTED, MEASURED, RunResult
from gpulab.views.text import STYLES, Glyphs, marked, three, times

_OUTCOMES = {"interrupted": "stopped"}
_BROKEN = "files that cannot be read"


def listing(rows: Sequence[Row], glyphs: Glyphs) -> Text:
    """A line a scenario under its topic; files with errors last."""
    text = Text(no_wrap=True, overflow=glyphs.overflow)
    width = max((len(row.name) for row in rows), default=0) + 2
    for topic, members in by_topic(rows):
        if members[0].error:
            text.append(glyphs("".join(f"{row.path}\n  {row.error}\n" for row in members)), style="red")
            continue
        text.append(glyphs(f"{topic}\n"), style="bold")
        for row in members:
            told = f"  ({row.missing})" if row.missing else ""
            text.append(glyphs(f"  {row.name:<{width}}{row.title}{told}\n"), style="dim" if row.missing else "")
    text.rstrip()
    return text


def by_topic(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """The rows under their topics, in the order they come; files that cannot be read last."""
    found: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.error is not None):
        found.setdefault(_BROKEN if row.error else row.topic, []).append(row)
    return list(found.items())


def mark(run: RunResult) -> tuple[str, str]:
    """What a run found in seven characters, with its style: the largest speedup, or why there is none.

    A question mark is for one that is inconclusive, a star for a quick run.
    """
    if run.exit_code != MEASURED:
        return _OUTCOMES.get(run.outcome, run.outcome), "dim" if run.exit_code == INTERRUPTED else "bold red"
    found = [one for one in run.comparisons if one.speedup and one.against == run.variants[0].name]
    if not found:
        return marked("done", quick=run.quick), "dim"
    best = max(found, key=lambda one: (one.verdict != "inconclusive", one.speedup or 0.0))
    told = f"{three(best.speedup or 0.0)}x?" if best.verdict == "inconclusive" else times(best.speedup)
    return marked(told, quick=run.quick), STYLES[best.verdict]
