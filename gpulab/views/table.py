"""The table of a run: times and speedups with their intervals. The same one while it runs and when it has ended."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.model.compare import Comparison
from gpulab.model.result import UNDER_WAY, RunResult, VariantResult
from gpulab.views.text import STYLES, Glyphs, marked, plus_minus, seconds, span, times


def table(run: RunResult, glyphs: Glyphs) -> Table:
    """A row a variant, one more for each further comparison, and the control. Under way, verdicts are so far."""
    live = run.outcome == UNDER_WAY
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold", expand=False)
    # Under way nothing jumps when a number comes in.
    for name, justify, width in (
        ("variant", "left", 7),
        (f"time/{run.per}", "right", 7 * live),
        ("±", "right", 5 * live),
        ("speedup", "right", 8),
        ("99 % interval", "right", 14 * live),
        ("so far" if live else "verdict", "left", (12 + run.quick) * live),
    ):
        # Names may be folded, numbers never.
        folds = name == "variant"
        table.add_column(
            glyphs(name),
            justify=justify,  # type: ignore[arg-type]
            no_wrap=not folds,
            overflow="fold",
            min_width=width or None,
        )
    for index, one in enumerate(run.variants):
        mine = [comparison for comparison in run.comparisons if comparison.variant == one.name]
        table.add_row(*_row(run, one, mine[0] if mine else None, baseline=index == 0, glyphs=glyphs))
        for rung in mine[1:]:
            table.add_row(Text(glyphs(f"  vs {rung.against}"), style="dim"), "", "", *_speedup(run, rung, glyphs))
    if run.control and run.control.speedup is not None:
        control = run.control
        table.add_row(
            Text("control", style="dim"),
            "",
            "",
            Text(times(control.speedup), style="dim"),
            Text(glyphs(span(control.low, control.high)), style="dim"),
            Text(marked(control.verdict, quick=run.quick), style=STYLES.get(control.verdict, "")),
        )
    return table


def _row(
    run: RunResult, one: VariantResult, comparison: Comparison | None, *, baseline: bool, glyphs: Glyphs
) -> list[RenderableType]:
    per_item = one.items if run.per == "item" and one.items else 1.0
    time = one.time_s
    cells: list[RenderableType] = [
        Text(glyphs(one.name)),
        glyphs(seconds(time.median / per_item)) if time else "",
        glyphs(plus_minus(time.low, time.high, time.median)) if time else "",
    ]
    if one.status not in ("ok", "pending"):
        return [*cells, "", "", Text(marked(one.status, quick=run.quick), style=STYLES.get(one.status, ""))]
    if comparison is None:
        label = "baseline" if baseline and not run.functions else ""
        return [*cells, Text(label, style="dim"), "", Text(marked("", quick=run.quick), style="dim")]
    return [*cells, *_speedup(run, comparison, glyphs)]


def _speedup(run: RunResult, comparison: Comparison, glyphs: Glyphs) -> list[RenderableType]:
    verdict = Text(marked(comparison.verdict, quick=run.quick), style=STYLES[comparison.verdict])
    if comparison.verdict == "invalid":
        return ["", "", verdict]
    if run.outcome == UNDER_WAY and comparison.speedup is None:
        return ["", "", ""]
    return [Text(times(comparison.speedup)), Text(glyphs(span(comparison.low, comparison.high))), verdict]
