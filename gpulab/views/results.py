"""The result of a run as a person reads it: the table, the claim beside the measured, and what must be known."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.model.compare import Comparison
from gpulab.model.result import MEASURED, RunResult, VariantResult
from gpulab.model.state import RunState
from gpulab.views.text import STYLES, Glyphs, plus_minus, seconds, span, times

_LAST_LINES = 10


def result(run: RunResult, glyphs: Glyphs) -> RenderableType:
    """Header, table, claim, warnings, method: everything of a finished run but where its file is."""
    parts: list[RenderableType] = [_header(run, glyphs), ""]
    if any(one.time_s for one in run.variants):
        parts += [_table(run, glyphs), ""]
    parts += [Text(glyphs(line), style) for line, style in _notes(run)]
    return Group(*parts)


def summary(runs: Sequence[RunResult], glyphs: Glyphs) -> Table:
    """A line for each of several runs: what came out, and why where it is no measurement."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in ("scenario", "outcome", "comparisons"):
        table.add_column(name, overflow="fold")
    for run in runs:
        told = ", ".join(
            f"{one.variant} {times(one.speedup)} {one.verdict}"
            for one in run.comparisons
            if one.against == run.variants[0].name
        )
        style = "" if run.exit_code == MEASURED else "bold red"
        table.add_row(run.scenario, Text(run.outcome, style), glyphs(run.reason or told))
    return table


def failures(state: RunState, glyphs: Glyphs) -> Text:
    """What a failed run leaves to look at: the tracebacks, and the last lines that the scenario printed."""
    text = Text()
    for failure in state.failures:
        if failure.traceback and failure.kind not in ("cancelled", "timeout"):
            text.append(glyphs(failure.traceback.rstrip()) + "\n", "dim")
    lines = [line for log in state.log for line in log.lines][-_LAST_LINES:]
    if state.failures and lines and state.outcome != "cancelled":
        text.append(glyphs("the last it printed:\n" + "\n".join(f"  {line}" for line in lines)) + "\n", "dim")
    return text


def _header(run: RunResult, glyphs: Glyphs) -> Text:
    title = f" · {run.title}" if run.title and run.title != run.scenario else ""
    text = Text(glyphs(f"{run.scenario}{title}"), style="bold")
    facts = []
    if run.device:
        threads = f", {run.device.threads} thread{'s' * (run.device.threads > 1)}" if run.device.kind == "cpu" else ""
        facts.append(f"{run.device.name}{threads}" + (f" ({run.device.uuid})" if run.device.uuid else ""))
    facts += [" ".join(f"{name}={value}" for name, value in run.params.items())] if run.params else []
    facts += ["a smoke run: not for conclusions"] if run.smoke else []
    if facts:
        text.append(glyphs("\n" + " · ".join(facts)), style="not bold dim")
    return text


def _table(run: RunResult, glyphs: Glyphs) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold", expand=False)
    for name, justify in (
        ("variant", "left"),
        (f"time/{run.per}", "right"),
        ("±", "right"),
        ("speedup", "right"),
        ("99 % interval", "right"),
        ("verdict", "left"),
    ):
        # Names may be folded, numbers never.
        folds = name == "variant"
        table.add_column(glyphs(name), justify=justify, no_wrap=not folds, overflow="fold")  # type: ignore[arg-type]
    for index, one in enumerate(run.variants):
        mine = [comparison for comparison in run.comparisons if comparison.variant == one.name]
        table.add_row(*_row(run, one, mine[0] if mine else None, baseline=index == 0, glyphs=glyphs))
        for rung in mine[1:]:
            table.add_row(Text(f"  vs {rung.against}", style="dim"), "", "", *_speedup(rung, glyphs))
    if run.control and run.control.speedup is not None:
        control = run.control
        table.add_row(
            Text("control", style="dim"),
            "",
            "",
            Text(times(control.speedup), style="dim"),
            Text(glyphs(span(control.low, control.high)), style="dim"),
            Text(control.verdict, style=STYLES.get(control.verdict, "")),
        )
    return table


def _row(
    run: RunResult, one: VariantResult, comparison: Comparison | None, *, baseline: bool, glyphs: Glyphs
) -> list[RenderableType]:
    per_item = one.items if run.per == "item" and one.items else 1.0
    time = one.time_s
    cells: list[RenderableType] = [
        Text(one.name),
        glyphs(seconds(time.median / per_item)) if time else "",
        glyphs(plus_minus(time.low, time.high, time.median)) if time else "",
    ]
    if one.status != "ok":
        return [*cells, "", "", Text(one.status, style=STYLES.get(one.status, ""))]
    if comparison is None:
        label = "baseline" if baseline and not run.functions else ""
        return [*cells, Text(label, style="dim"), "", ""]
    return [*cells, *_speedup(comparison, glyphs)]


def _speedup(comparison: Comparison, glyphs: Glyphs) -> list[RenderableType]:
    verdict = Text(comparison.verdict, style=STYLES[comparison.verdict])
    if comparison.verdict == "invalid":
        return ["", "", verdict]
    return [Text(times(comparison.speedup)), Text(glyphs(span(comparison.low, comparison.high))), verdict]


def _notes(run: RunResult) -> list[tuple[str, str]]:
    """Lines below the table, each with its style."""
    found: list[tuple[str, str]] = []
    for one in run.variants:
        if one.status in ("failed", "wrong", "invalid", "skipped"):
            place = ", ".join(filter(None, (one.stage, f"line {one.line}" if one.line else None)))
            where = f" ({place})" if place else ""
            found.append((f"{one.name} {one.status}{where}: {one.reason}", STYLES[one.status]))
    said = any(one.reason and one.reason in (run.reason or "") for one in run.variants)
    if run.reason and run.exit_code != MEASURED and not said:
        found.append((f"{run.outcome}: {run.reason}", "bold red"))
    found += _claims(run)
    for comparison in run.comparisons:
        if comparison.verdict == "inconclusive":
            found.append((f"{comparison.variant} against {comparison.against}: {comparison.reason}", "yellow"))
    found += [
        (f"{report.variant or run.scenario}: {report.name} {report.value:g}", "")
        for report in run.reports
        if report.value is not None
    ]
    found += [(f"note: {warning}", "yellow") for warning in run.warnings]
    if run.method.epochs:
        found.append((_method(run), "dim"))
    return found


def _claims(run: RunResult) -> list[tuple[str, str]]:
    found = []
    if run.claim:
        measured = [
            f"{one.variant} {times(one.speedup)} ({one.verdict})"
            for one in run.comparisons
            if one.speedup is not None and one.against == run.variants[0].name and one.verdict != "invalid"
        ]
        found.append((f"claim: {run.claim}; measured here: {', '.join(measured) or 'nothing'}", ""))
    for one in run.variants:
        mine = next((comparison for comparison in run.comparisons if comparison.variant == one.name), None)
        if one.claim and mine and mine.speedup is not None:
            found.append((f"claim of {one.name}: {one.claim}; measured here: {times(mine.speedup)}", ""))
    return found


def _method(run: RunResult) -> str:
    method = run.method
    facts = [
        f"{method.epochs} epochs, {method.rounds} rounds of paired blocks, {method.clock} clock, {method.cache} cache",
        f"interval over {method.unit}",
        f"floor {method.floor:.0%}",
    ]
    facts += [f"stopped on {method.stopped}"] if method.stopped else []
    facts += [f"empty block {seconds(method.empty_block_s)}"] if method.empty_block_s else []
    busy = [one.contention for one in run.variants if one.contention is not None]
    facts += [f"contention up to {max(busy):.0%}"] if busy else []
    return " · ".join(facts)
