"""The claims of the sources beside what was measured: under its topic a line a lesson, and below it
what was compared, what the source says, and where the technique gains nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from gpulab.catalog.catalog import claim_on_cpu
from gpulab.catalog.view import ago, mark
from gpulab.core.units import interval
from gpulab.draw.blocks import Block, Heading, Inside, Text, rows_table
from gpulab.features.claims.runs import Claim
from gpulab.report.past import PastRun
from gpulab.report.sentences import sentence
from gpulab.stats.verdicts import shown

_NAME, _FIGURES, _WIDEST = 23, 76, 110


def topic_claims(topic: str, claims: Sequence[Claim], now: datetime, width: int) -> Iterator[Block]:
    """Yield the lessons of a topic, for a width in cells."""
    here = sum(claim.run is not None and not claim.recorded_on for claim in claims)
    yield Heading(topic, f"{here} of {len(claims)} measured here")
    for claim in claims:
        figures = _figures(claim, now)
        said = {name: text for name, text in _said(claim) if text}
        if len(said.get("measured", "")) <= width - _FIGURES:
            figures.pad_right(max(0, _FIGURES - figures.cell_len))
            figures.append(said.pop("measured", ""), "not bold")
            figures.rstrip()
        yield figures
        if said:
            yield Inside(_words(said), left=2, width=_WIDEST)
    yield ""


def _figures(claim: Claim, now: datetime) -> Text:
    line = Text(f"{claim.row.name:<{_NAME}}", "bold", no_wrap=True, overflow="ellipsis")
    run = claim.run
    if run is None:
        return line.append(f"  gpulab --run {claim.row.name}", "not bold")
    outcome = mark(run)
    best = claim.best
    line.append(f"{outcome.text:>8}", f"not bold {outcome.style}")
    line.append(f"  {interval(best.speedup) if best else '':<16}", "not bold")
    line.append(
        f"{_where(claim, run, now):<17}", "not bold dim" if claim.recorded_on else "not bold"
    )
    lines = "" if claim.lines is None else "+{} -{}".format(*claim.lines)
    return line.append(lines, "not bold")


def _where(claim: Claim, run: PastRun, now: datetime) -> str:
    if claim.recorded_on:
        return f"{claim.recorded_on}, recorded"
    return f"{'CPU' if run.device.kind == 'cpu' else 'GPU'} here, {ago(run, now)}"


def _words(said: Mapping[str, str]) -> Block:
    words = rows_table()
    for name, text in said.items():
        words.add_row(Text(f"{name:<8}", "dim"), Text(text))
    return words


def _said(claim: Claim) -> Iterator[tuple[str, str]]:
    """Yield (what it is, a text, empty where there is none)."""
    row, run, best = claim.row, claim.run, claim.best
    if run is not None:
        compared = f"{best.variant} over {best.against}: {shown(best).words}" if best else ""
        params = f"with {claim.params}" if claim.params else ""
        stopped = "run stopped after that" if run.stopped else ""
        yield "measured", ", ".join(filter(None, [compared, params, stopped]))
    elif row.missing:
        yield "needs", sentence(row.missing)
    on_cpu = run is not None and run.device.kind == "cpu"
    yield "claim", claim_on_cpu(row.claim, row.cpu) if on_cpu else row.claim
    yield "when not", claim.when_not
