"""The catalog as a list: topics, scenarios, what the machine lacks, and files that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from gpulab.protocol.listing import ScenarioRow
from gpulab.protocol.statuses import Verdict
from gpulab.report.exit_codes import Conclusion, ExitCode
from gpulab.views.findings import sentence
from gpulab.views.text import STYLES, Glyphs, three_digits, times, with_star

if TYPE_CHECKING:
    from gpulab.report.report import RunReport

OWN = "your own"
_UNREADABLE = "files that cannot be read"
_SHORT_OUTCOMES = {Conclusion.INTERRUPTED: "stopped", Conclusion.SLOWER: "slower"}


def listing(rows: Sequence[ScenarioRow], glyphs: Glyphs) -> Text:
    """A line a scenario under its topic; what the user named comes first."""
    text = Text(no_wrap=True, overflow=glyphs.overflow)
    width = max((len(row.name) for row in rows), default=0) + 2
    for topic, members in by_topic(rows):
        text.append(f"{glyphs(topic)}\n", style="bold")
        for row in members:
            text.append_text(_error(row, glyphs) if row.error else _line(row, width, glyphs))
            if row.hides:
                text.append(f"    {glyphs(sentence(row.hides))}\n", style="yellow")
    text.rstrip()
    return text


def _error(row: ScenarioRow, glyphs: Glyphs) -> Text:
    return Text(f"  {glyphs(row.path)}\n    {glyphs(row.error or '')}\n", style="red")


def _line(row: ScenarioRow, width: int, glyphs: Glyphs) -> Text:
    missing = f"  ({sentence(row.missing)})" if row.missing else ""
    title = "" if row.title == row.name else row.title
    return Text(glyphs(f"  {row.name:<{width}}{title}{missing}".rstrip()) + "\n", style="dim" if row.missing else "")


def by_topic(rows: Sequence[ScenarioRow]) -> list[tuple[str, list[ScenarioRow]]]:
    """The rows under their topics, in the order they come: the user's own first, unreadable files of folders last."""
    topics: dict[str, list[ScenarioRow]] = {}
    for row in sorted(rows, key=lambda row: not row.own and row.error is not None):
        topic = OWN if row.own else _UNREADABLE if row.error else row.topic
        topics.setdefault(topic, []).append(row)
    return list(topics.items())


def title_beside_name(row: ScenarioRow) -> str:
    """The title without what the name says already."""
    return "" if row.title == row.name else row.title.partition(": ")[2] or row.title


def mark(report: RunReport) -> tuple[str, str]:
    """What a run came to in seven characters, with its style: the largest speedup, or why there is none.

    A question mark is for an inconclusive one, a star for a quick run.
    """
    if report.exit_code != ExitCode.MEASURED:
        style = "dim" if report.under_way or report.exit_code == ExitCode.INTERRUPTED else "bold red"
        return _SHORT_OUTCOMES.get(report.outcome, report.outcome), style
    fastest = report.best or next(iter(report.best_among), None)
    best = report.comparison(fastest) if fastest else None
    if best is None:
        return with_star("done", quick=report.quick), "dim"
    inconclusive = best.verdict == Verdict.INCONCLUSIVE
    speedup = f"{three_digits(best.speedup or 0.0)}x?" if inconclusive else times(best.speedup)
    return with_star(speedup, quick=report.quick), STYLES[best.verdict]
