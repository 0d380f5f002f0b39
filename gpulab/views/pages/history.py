"""Runs of the past, a line each, and the speedups of one scenario's runs on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.text import Text

from gpulab.views.listing import age, best_comparison, mark
from gpulab.views.live.area import Area
from gpulab.views.live.axis import LogAxis, around
from gpulab.views.roofline.canvas import Canvas, fit
from gpulab.views.text import Glyphs, duration, plural, seconds, span, times

if TYPE_CHECKING:
    from gpulab.report.past_run import PastRun

_NAME = 24
_ROOM = 0.2


def line(run: PastRun, now: datetime, glyphs: Glyphs, width: int) -> Text:
    """When, what, what it came to, and where the best speedup lies; or the shortest time of what is not compared."""
    came_to, best = mark(run), best_comparison(run)
    word = came_to.verdict or ("inconclusive" if came_to.text.rstrip("*").endswith("?") else "")
    between = span(best.low, best.high) if best else _fastest(run)
    cells = f"{ago(run, now):>6}  {fit(run.scenario, _NAME, glyphs):<{_NAME}} "
    text = Text(glyphs(cells), no_wrap=True, overflow=glyphs.overflow)
    text.append(glyphs(f"{came_to.text:>8} {word:<13}"), came_to.style)
    text.append(glyphs(f"{between:<16} "))
    where = run.device.name
    text.append(glyphs(fit(where, max(0, width - text.cell_len), glyphs)), "dim")
    return text


def ago(run: PastRun, now: datetime) -> str:
    """How long before now it started; nothing where its file does not say."""
    try:
        at = datetime.fromisoformat(run.at)
        return age((now - (at if at.tzinfo else at.replace(tzinfo=UTC))).total_seconds())
    except (ValueError, OverflowError):
        return ""


def matches(run: PastRun, words: Sequence[str]) -> bool:
    """Whether all of the words are in what one may look for."""
    best = mark(run)
    text = f"{run.scenario} {run.title} {run.outcome} {best.verdict} {run.device.name} {run.at} {run.host}".casefold()
    return all(word in text for word in words)


def others_on_one_axis(runs: Sequence[PastRun], chosen: PastRun, glyphs: Glyphs, *, width: int, height: int) -> Text:
    """The runs of the chosen one's scenario, the newest last: their best speedups with their intervals."""
    canvas = Canvas(width, height, glyphs)
    area = Area(canvas, 0, 0, width, height)
    own = [run for run in runs if run.path == chosen.path and run.scenario == chosen.scenario]
    area.put(0, 0, "─" * width, "dim")
    area.put(0, 2, f" {chosen.scenario}: its {plural(len(own), 'run')} here, the newest last ", "bold")
    named = chosen.best or next((entry.variant for entry in chosen.comparisons if entry.speedup), "")
    both = [(run, entry) for run in own for entry in run.comparisons if entry.variant == named and entry.low]
    shown = both[-(height - 2) :] if height > 2 else []
    if not shown:
        area.put(1, 0, "no speedup with an interval")
        return canvas.text()
    ends = [end for _, entry in shown for end in (entry.low, entry.high) if end]
    axis = LogAxis(*around(ends, _ROOM), max(10, width - 18))
    area.put(1, 0, f"{named}", most=16)
    for start, label in axis.ticks(lambda value: f"{value:g}x"):
        area.put(1, 17 + start, label)
    for row, (run, entry) in enumerate(shown, 2):
        area.put(row, 0, f"{'>' if run is chosen else ' '} {run.at[5:16].replace('T', ' ')}")
        area.interval(row, 17, axis, (entry.low or 1.0, entry.speedup or 1.0, entry.high or 1.0))
    return canvas.text()


def _fastest(run: PastRun) -> str:
    return f"{seconds(min(run.times_s.values()))}" if run.times_s else ""


def facts(run: PastRun) -> str:
    """One line about the run under the cursor."""
    params = " ".join(f"{name}={value}" for name, value in run.params.items())
    torch = run.environment.get("torch") or "?"
    best = best_comparison(run)
    speedup = f"{best.variant} {times(best.speedup)} over {best.against} · " if best else ""
    return f"{speedup}{params} · torch {torch} · {duration(run.elapsed_s)} · {run.rounds} rounds · {run.run_file}"
