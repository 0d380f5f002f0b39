"""The catalog as a list: topics, scenarios, what the machine lacks, and files that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from gpulab.protocol.listing import ScenarioRow
from gpulab.protocol.statuses import Verdict
from gpulab.report.course import course
from gpulab.report.exit_codes import Conclusion, ExitCode
from gpulab.views.findings import sentence
from gpulab.views.text import STYLES, Glyphs, three_digits, times, with_star

if TYPE_CHECKING:
    from gpulab.analysis.comparison import Comparison
    from gpulab.report.past_run import PastComparison, PastRun
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


def by_course(rows: Sequence[ScenarioRow]) -> list[tuple[str, list[ScenarioRow]]]:
    """The rows in the order of the course, under its steps with their numbers; the others follow by topic."""
    named = {row.name: row for row in rows if not row.own}
    steps = [
        (f"{number}. {stage.title}", [named.pop(lesson.name) for lesson in stage.lessons if lesson.name in named])
        for number, stage in enumerate(course(), 1)
    ]
    others = [row for row in rows if row.own or row.name in named]
    own = [group for group in by_topic(others) if group[0] == OWN]
    rest = [(f"besides: {topic}", members) for topic, members in by_topic(others) if topic != OWN]
    return [*own, *((title, members) for title, members in steps if members), *rest]


def title_beside_name(row: ScenarioRow) -> str:
    """The title without what the name says already."""
    return "" if row.title == row.name else row.title.partition(": ")[2] or row.title


@dataclass(frozen=True)
class Mark:
    """What a run came to in seven characters, and the verdict where that says more; with its style."""

    text: str
    style: str
    verdict: str = ""


CANNOT_RUN = Mark("cannot", "yellow")
"""Of a scenario that was to run, and for which this machine lacks something."""


def mark(run: RunReport | PastRun) -> Mark:
    """The best speedup, or why there is none: a question mark is for an inconclusive one, a star for a quick run."""
    if run.exit_code != ExitCode.MEASURED:
        faint = run.outcome == Conclusion.UNDER_WAY or run.exit_code == ExitCode.INTERRUPTED
        return Mark(_SHORT_OUTCOMES.get(run.outcome, run.outcome), "dim" if faint else "bold red")
    best = best_comparison(run)
    if best is None:
        return Mark(with_star("done", quick=run.quick), "dim")
    inconclusive = best.verdict == Verdict.INCONCLUSIVE
    speedup = f"{three_digits(best.speedup or 0.0)}x?" if inconclusive else times(best.speedup)
    word = "" if inconclusive else best.verdict
    return Mark(with_star(speedup, quick=run.quick), STYLES[best.verdict], word)


def best_comparison(run: RunReport | PastRun) -> Comparison | PastComparison | None:
    """The comparison of the best variant; of those among which it is, the largest speedup."""
    measured: list[Comparison | PastComparison] = [entry for entry in run.comparisons if entry.speedup is not None]
    named = next((entry for entry in measured if entry.variant == run.best), None)
    return named or max(measured, key=lambda entry: entry.speedup or 0.0, default=None)


def age(seconds: float) -> str:
    """How long ago, in six characters."""
    for unit_s, unit in ((7 * 86400.0, "w"), (86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= unit_s:
            return f"{min(seconds / unit_s, 999):.0f} {unit}"
    return "now"
