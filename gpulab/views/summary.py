"""Several runs, one below the other: what each claims, what it measured, and what that does to goodput."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from gpulab.model.result import MEASURED, Goodput, RunResult
from gpulab.views.text import QUICK, STYLES, Glyphs, marked, span, times

_HEADS = ("speedup", "99 % interval", "verdict", "goodput")


def line(run: RunResult, glyphs: Glyphs, number: int, count: int) -> Text:
    """One of several runs that has ended: its number, and what came out."""
    base = run.variants[0].name if run.variants else ""
    told = [f"{one.variant} {times(one.speedup)} {one.verdict}" for one in run.comparisons if one.against == base]
    text = Text(glyphs(f"{number:>2} of {count}  {run.scenario}: "), no_wrap=True, overflow=glyphs.overflow)
    text.append(marked(run.outcome, quick=run.quick), "" if run.exit_code == MEASURED else "bold red")
    why = run.reason if run.exit_code != MEASURED or not told else None
    return text.append(glyphs(f"  {why or ', '.join(told)}"), "dim")


def summary(runs: Sequence[RunResult], glyphs: Glyphs) -> RenderableType:
    """A heading for each run with its claim, a row for each comparison with its baseline, in columns that line up."""
    rows = {id(run): _rows(run) for run in runs}
    every = [row for some in rows.values() for row in some]
    widths = [max(map(len, column)) for column in zip(("", *_HEADS), *(row[:5] for row in every), strict=True)]
    parts: list[RenderableType] = [Text(_aligned(("", *_HEADS), widths), "bold", no_wrap=True)]
    for run in runs:
        heading = Text(glyphs(run.scenario), "bold")
        heading.append(glyphs(f"  {run.claim}") if run.claim else "", "not bold dim")
        parts.append(heading)
        if run.exit_code != MEASURED or not rows[id(run)]:
            style = "dim" if run.exit_code == MEASURED else "bold red"
            why = run.reason or ("" if run.exit_code != MEASURED else "nothing is compared: see its roofline")
            outcome = marked(run.outcome, quick=run.quick)
            parts.append(Text(glyphs(f"  {outcome}{': ' * bool(why)}{why}"), style))
        for row in rows[id(run)]:
            text = Text(glyphs(_aligned(row[:5], widths)), no_wrap=True, overflow=glyphs.overflow)
            start = sum(widths[:3]) + 2 * 4
            text.stylize(STYLES.get(row[3].rstrip("*"), ""), start, start + len(row[3]))
            text.append(glyphs(f"  {row[5]}"), "dim")
            parts.append(text)
    if any(run.quick for run in runs):
        parts.append(Text(QUICK, "dim"))
    if any("?" in row[4] for row in every):
        parts.append(Text("? doubted: see why in its own result", "dim"))
    return Group(*parts)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, speedup, interval, verdict, goodput = (
        cell.ljust(width) if place in (0, 3) else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return f"  {name}  {speedup}  {interval}  {verdict}  {goodput}"


def _rows(run: RunResult) -> list[tuple[str, str, str, str, str, str]]:
    """Variant, speedup, interval, verdict, goodput before and after, and the variant's own claim."""
    shares = {one.name: _share(one.goodput) for one in run.variants if one.goodput}
    claims = {one.name: one.claim for one in run.variants}
    found = []
    with_baseline = {one.variant for one in run.comparisons if one.against == run.variants[0].name}
    for one in run.comparisons:
        if one.against == run.variants[0].name or one.variant not in with_baseline:
            ends = [shares.get(name) for name in (one.against, one.variant)]
            told = " > ".join(filter(None, ends)) if all(ends) else ""
            verdict = marked(one.verdict, quick=run.quick)
            interval = span(one.low, one.high)
            found.append((one.variant, times(one.speedup), interval, verdict, told, claims.get(one.variant) or ""))
    return found


def _share(of: Goodput) -> str:
    """Goodput, with a question mark where it must be doubted."""
    if of.goodput is None:
        return ""
    return f"{of.goodput:.0%}{'' if of.reliable and not of.why else '?'}"
