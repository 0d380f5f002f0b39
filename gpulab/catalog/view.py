"""The catalog as a list, and a scenario to be read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpulab.catalog.catalog import ScenarioRow, claim_on_cpu
from gpulab.catalog.needs import short_need
from gpulab.core.statuses import Conclusion, ExitCode, Verdict
from gpulab.core.units import interval, plural, three_digits, times
from gpulab.draw.blocks import Block, Group, Inside, Markdown, Table, Text, rows_table
from gpulab.draw.styles import STYLES, with_star
from gpulab.features import present
from gpulab.report.sentences import sentence
from gpulab.scenario import Param

if TYPE_CHECKING:
    from gpulab.report.past import PastComparison, PastRun
    from gpulab.report.report import RunReport
    from gpulab.stats.comparison import Comparison

_WIDEST = 78
"""Cells of a line that is read with ease."""
_WIDEST_TABLE = 110
_EXPECTED = "g: guess first, a: show"
"""What stands in place of the speedups to expect as long as nobody has guessed."""
_TABLE_OF_VARIANTS = re.compile(r"^\| *variant *\|(?:.*\n\|)+.*$", re.MULTILINE)


def lesson(
    row: ScenarioRow,
    *,
    chosen: Mapping[str, str] | None = None,
    earlier: Mapping[str, str] | None = None,
    hides_claim: bool = False,
    answers: bool = True,
    expected: bool = True,
) -> Block:
    """The text as Markdown. `chosen`: what the user set for its runs; `earlier`: lines about those
    before; `hides_claim`: a prediction waits for its answer; `answers`: those to the questions of
    the course too; `expected`: the claim, and what to expect of each variant, too.
    """
    if row.error:
        hides = [Text(sentence(row.hides), "yellow")] if row.hides else []
        return Group(Text(row.path, "bold"), Text(row.error, "red"), *hides)
    title, _, rest = row.lesson.partition("\n")
    own_table = _TABLE_OF_VARIANTS.search(rest)
    parts: list[Block] = [Text(title or row.title, "bold"), ""]
    if own_table:
        parts.append(_prose(rest[: own_table.start()]))
        table = own_table[0] if expected else _without_expected(own_table[0])
        shown = Inside(Markdown(table), width=_WIDEST_TABLE)
        parts += ["", variants_table(row), ""] if hides_claim else [shown, ""]
        rest = rest[own_table.end() :]
    if rest.strip():
        parts += [_prose(rest), ""]
    if row.function:
        parts += [
            Text("a plain function: it is timed and profiled, and compared with nothing", "dim"),
            "",
        ]
    elif not own_table:
        parts += [variants_table(row), ""]
    facts = rows_table()
    listed = _facts(row)
    if row.claim and hides_claim:
        listed["claim"] = "hidden until the verdict is final"
    elif row.claim and not expected:
        listed["claim"] = _EXPECTED
    listed["chosen"] = _assignments(chosen or {})
    if not hides_claim:
        listed |= earlier or {}
    for name, value in listed.items():
        if value:
            facts.add_row(Text(name, "dim"), Text(value, overflow="fold"))
    questions = Group(*_questions(row, answers=answers))
    return Group(*parts, facts, Inside(questions, width=_WIDEST))


def _without_expected(table: str) -> str:
    """Return a table of variants that says once how to see what to expect."""
    rows = [row.strip("| ").split("|") for row in table.splitlines()]
    place = next(
        (place for place, cell in enumerate(rows[0]) if cell.strip().startswith("expected")), None
    )
    if place is None:
        return table
    for row in rows[2:]:
        row[place : place + 1] = [""]
    rows[2][place] = _EXPECTED
    return "\n".join(f"|{'|'.join(row)}|" for row in rows)


def _prose(text: str) -> Block:
    return Inside(Markdown(text.strip("\n")), width=_WIDEST)


def _questions(row: ScenarioRow, *, answers: bool) -> list[Block]:
    """Those of the course on a lesson; none of the user's own."""
    # the list, which is all of the first frame, needs nothing of it
    course = present("course.view")
    if course is None or row.own:
        return []
    asked = course.course_lesson(row.name)
    return ["", course.lesson_questions(asked, answers=answers)] if asked else []


def variants_table(row: ScenarioRow) -> Table:
    variants = rows_table()
    for name, summary in zip(row.variants, row.summaries, strict=True):
        variants.add_row(Text(name, "bold"), Text(summary))
    return variants


def _facts(row: ScenarioRow) -> dict[str, str]:
    return {
        "claim": claim_on_cpu(row.claim, row.cpu),
        "parameters": _assignments(row.params),
        "on a CPU": _assignments(row.cpu),
        "sweep": ", ".join(
            f"{name}={','.join(map(str, values))}" for name, values in row.sweep.items()
        ),
        "missing here": sentence(row.missing) if row.missing else "",
        "recording": replay_hint(row),
        "file": row.path,
        "note": sentence(row.hides) if row.hides else "",
    }


def replay_hint(row: ScenarioRow) -> str:
    """Return how to see the recording of it that ships; empty where none does."""
    if not row.recording:
        return ""
    return f"made on {row.recording}: v replays it (gpulab --replay {row.name})"


def _assignments(params: Mapping[str, Param] | Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())


OWN = "your own"
_UNREADABLE = "files that cannot be read"
_SHORT_OUTCOMES = {Conclusion.INTERRUPTED: "stopped"}
_MEASURED = (ExitCode.MEASURED, ExitCode.SLOWER, ExitCode.INCONCLUSIVE)
"""Of runs whose verdicts hold; the last two missed a required speedup."""
_DECIDED = (Verdict.FASTER, Verdict.SLOWER)


def listing(rows: Sequence[ScenarioRow]) -> Text:
    """A line a scenario under its topic, with a letter for what it needs and the machine lacks, and
    what the letters mean; what the user named comes first.
    """
    text = Text(no_wrap=True, overflow="ellipsis")
    width = max((len(row.name) for row in rows), default=0) + 2
    for topic, members in by_topic(rows):
        text.append(f"{topic}\n", style="bold")
        for row in members:
            text.append(_error(row) if row.error else _line(row, width))
            if row.hides:
                text.append(f"    {sentence(row.hides)}\n", style="yellow")
    missing = [row.missing for row in rows if row.missing]
    needs = {need: sentence(finding) for finding in missing if (need := short_need(finding))}
    if needs:
        can_run = sum(row.missing is None and row.error is None for row in rows)
        text.append(f"\n{can_run} of {plural(len(rows), 'scenario')} can run here\n")
    for (letter, what), why in needs.items():
        text.append(f"{letter} needs {what}: {why.partition(': ')[2] or why}\n", "dim")
    recorded = sum(row.missing is not None and row.recording != "" for row in rows)
    if recorded:
        text.append(f"{recorded} of these can be watched as recorded: gpulab --replay NAME\n")
    text.rstrip()
    return text


def _error(row: ScenarioRow) -> Text:
    return Text(f"  {row.path}\n    {row.error or ''}\n", style="red")


def _line(row: ScenarioRow, width: int) -> Text:
    need = short_need(row.missing) if row.missing else None
    letter = need[0] if need else ""
    missing = f"  ({sentence(row.missing)})" if row.missing and not need else ""
    title = "" if row.title == row.name else row.title
    return Text(
        f"{letter:<2}{row.name:<{width}}{title}{missing}".rstrip() + "\n",
        style="dim" if row.missing else "",
    )


def by_topic(rows: Sequence[ScenarioRow]) -> list[tuple[str, list[ScenarioRow]]]:
    """The rows under their topics, in the order they come: the user's own first, unreadable files
    of folders last.
    """
    topics: dict[str, list[ScenarioRow]] = {}
    for row in sorted(rows, key=lambda row: not row.own and row.error is not None):
        topic = OWN if row.own else _UNREADABLE if row.error else row.topic
        topics.setdefault(topic, []).append(row)
    return list(topics.items())


def by_course(rows: Sequence[ScenarioRow]) -> list[tuple[str, list[ScenarioRow]]]:
    """The rows in the order of the course, under its steps with their numbers; the user's own and
    other topics come first, other lessons of its topics last.
    """
    course = present("course.report")
    if course is None:
        return by_topic(rows)
    named = {row.name: row for row in rows if not row.own}
    steps = [
        (
            f"{number}. {title}",
            [named.pop(name) for name in names if name in named],
        )
        for number, (title, names) in enumerate(course.stages_of_lessons(), 1)
    ]
    topics = {row.topic for _, members in steps for row in members} | {_UNREADABLE}
    others = by_topic([row for row in rows if row.own or row.name in named])
    first = [group for group in others if group[0] not in topics]
    rest = [(f"besides: {topic}", members) for topic, members in others if topic in topics]
    return [*first, *((title, members) for title, members in steps if members), *rest]


def title_without_name(row: ScenarioRow) -> str:
    """The title without what the name says already."""
    return "" if row.title == row.name else row.title.partition(": ")[2] or row.title


@dataclass(frozen=True)
class OutcomeMark:
    """The result of a run in seven characters, and the verdict where that says more; with its
    style.
    """

    text: str
    style: str
    verdict: str = ""


CANNOT_RUN = OutcomeMark("cannot", "yellow")
"""Of a scenario that was to run, and for which this machine lacks something."""


def mark(run: RunReport | PastRun) -> OutcomeMark:
    """The best speedup, or why there is none: a question mark is for an inconclusive one, > or <
    before the nearer end of an imprecise one, a star for a quick run; of a smoke run only that it
    was one; of one that was stopped its speedup, where the verdict stood by then. Whether it
    reaches a required speedup is not said: the verdict is another.
    """
    best = best_comparison(run)
    if run.exit_code not in _MEASURED:
        if run.exit_code == ExitCode.INTERRUPTED and best and best.verdict in _DECIDED:
            speedup = with_star(times(best.speedup), quick=run.quick)
            return OutcomeMark(speedup, "dim", _SHORT_OUTCOMES[Conclusion.INTERRUPTED])
        faint = run.outcome == Conclusion.UNDER_WAY or run.exit_code == ExitCode.INTERRUPTED
        return OutcomeMark(
            _SHORT_OUTCOMES.get(run.outcome, run.outcome), "dim" if faint else "bold red"
        )
    if run.smoke:
        return OutcomeMark("smoke", "dim")
    if not run.comparisons:
        return OutcomeMark(with_star("timed", quick=run.quick), "dim")
    if best is None:
        return OutcomeMark(with_star("?", quick=run.quick), STYLES[Verdict.INCONCLUSIVE])
    from gpulab.stats.verdicts import shown

    found = shown(best)
    word: str = best.verdict
    speedup = times(best.speedup)
    if best.verdict == Verdict.INCONCLUSIVE:
        speedup = f"{three_digits(_speedup(best))}x?"
        word = ""
    elif found.imprecise and found.bound and found.at_least_ratio:
        speedup = f">{times(found.at_least_ratio)}"
    elif found.imprecise and found.bound:
        speedup = f"<{times(found.at_most_ratio)}"
    return OutcomeMark(with_star(speedup, quick=run.quick), STYLES[best.verdict], word)


def best_comparison(run: RunReport | PastRun) -> Comparison | PastComparison | None:
    """The comparison of the best variant; of those among which it is, the largest speedup over the
    baseline.
    """
    measured: list[Comparison | PastComparison] = [
        entry
        for entry in run.comparisons
        if entry.speedup is not None and entry.against == run.comparisons[0].against
    ]
    named = next((entry for entry in measured if entry.variant == run.best), None)
    return named or max(measured, key=_speedup, default=None)


def _speedup(entry: Comparison | PastComparison) -> float:
    return entry.speedup.value if entry.speedup else 0.0


def age(seconds: float) -> str:
    """Return how long ago, in six characters."""
    for unit_s, unit in ((7 * 86400.0, "w"), (86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= unit_s:
            return f"{min(seconds / unit_s, 999):.0f} {unit}"
    return "now"


def ago(run: PastRun, now: datetime) -> str:
    """Return how long before now it started; empty where unknown."""
    try:
        at = datetime.fromisoformat(run.at)
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        return age((now - at).total_seconds())
    except (ValueError, OverflowError):
        return ""


def last_run(run: PastRun) -> str:
    """Return what it came to, such as bmm 6.06x over loop (5.90 to 6.21), faster."""
    from gpulab.stats.verdicts import shown

    best = best_comparison(run)
    if best is None or not run.measured or run.smoke:
        return f"{mark(run).text} {mark(run).verdict}".strip()
    ends = interval(best.speedup)
    speedup = f"{best.variant} {times(best.speedup)} over {best.against}"
    return f"{speedup}{f' ({ends})' if ends else ''}, {shown(best).words}"
