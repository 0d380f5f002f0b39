"""The result of a run as a person reads it: the table, the claim beside the measured, and what must be known."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from gpulab.model.result import CLOSE, MEASURED, UNDER_WAY, RunResult
from gpulab.model.state import RunState
from gpulab.views.goodput import goodput, operations, phases
from gpulab.views.table import table
from gpulab.views.telemetry import alone
from gpulab.views.text import STYLES, Glyphs, byte_count, seconds, span, times

_LAST_LINES = 10
_PAGE = 4096
_MANY_FAULTS = 256
_SETTING_UP_S, _SETTING_UP = 0.5, 100
"""A first step as long as this, and as many times the median, compiled something or set it up."""


def result(run: RunResult, glyphs: Glyphs) -> RenderableType:
    """Header, table, claim, warnings, method: everything of a finished run but where its file is."""
    parts: list[RenderableType] = [_header(run, glyphs), ""]
    if any(one.time_s for one in run.variants):
        parts += [table(run, glyphs), ""]
    for part in (alone(run, glyphs), phases(run, glyphs), goodput(run, glyphs), operations(run, glyphs)):
        parts += [part, ""] if part is not None else []
    parts += [Text(glyphs(line), style) for line, style in _notes(run)]
    return Group(*parts)


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
    facts += ["a quick run: wide intervals"] if run.quick else []
    if facts:
        text.append(glyphs("\n" + " · ".join(facts)), style="not bold dim")
    return text


def _notes(run: RunResult) -> list[tuple[str, str]]:
    """Lines below the table, each with its style."""
    found: list[tuple[str, str]] = []
    for one in run.variants:
        if one.status in ("failed", "wrong", "invalid", "out of memory"):
            place = ", ".join(filter(None, (one.stage, f"line {one.line}" if one.line else None)))
            where = f" ({place})" if place else ""
            found.append((f"{one.name} {one.status}{where}: {one.reason}", STYLES[one.status]))
    skipped = [one for one in run.variants if one.status == "skipped"]
    for why in dict.fromkeys(one.reason for one in skipped):
        names = ", ".join(one.name for one in skipped if one.reason == why)
        found.append((f"{names} skipped: {why}", STYLES["skipped"]))
    said = any(one.reason and one.reason in (run.reason or "") for one in run.variants)
    if run.reason and run.exit_code != MEASURED and not said:
        found.append((f"{run.outcome}: {run.reason}", "bold red"))
    found += claims(run)
    found += _why_same(run)
    found += _combined(run)
    if run.sweet_spot:
        found.append((f"sweet spot: {run.sweet_spot}, the first within {CLOSE:.0%} of the best time per item", "bold"))
    for comparison in run.comparisons:
        if comparison.verdict == "inconclusive":
            found.append((f"{comparison.variant} against {comparison.against}: {comparison.reason}", "yellow"))
    found += [
        (f"{report.variant or run.scenario}: {report.name} {report.value:g}", "")
        for report in run.reports
        if report.value is not None
    ]
    found += _first_steps(run)
    found += _page_faults(run)
    found += _both_clocks(run)
    found += [(f"note: {warning}", "yellow") for warning in run.warnings]
    if run.telemetry and run.telemetry.gpu is None and run.telemetry.why:
        style = "yellow" if run.device and run.device.kind == "cuda" else "dim"
        found.append((f"no telemetry of a GPU: {run.telemetry.why}", style))
    if run.method.epochs:
        found.append((_method(run), "dim"))
    return found


def _why_same(run: RunResult) -> list[tuple[str, str]]:
    """Where there is no effect on this device, why that is right."""
    names = [one.variant for one in run.comparisons if one.verdict == "same" and one.against == run.variants[0].name]
    return [(f"{', '.join(names)} same: {run.same}", "")] if names and run.same else []


def _combined(run: RunResult) -> list[tuple[str, str]]:
    """Of a scenario that ends with all its fixes at once: what they promise one by one, and what they give together."""
    of = run.together
    if of is None:
        return []
    low, high = of.low or of.speedup, of.high or of.speedup
    if of.promised > high:
        gap = "some shorten the same part of the step, and what one has removed no other can remove again"
    elif of.promised < low:
        gap = "of what one fix leaves, the part of the next is a larger share (Amdahl)"
    else:
        gap = "as much as they promise"
    told = f"{times(of.speedup)} ({span(of.low, of.high)})"
    return [(f"alone the fixes multiply to {times(of.promised)}, together they give {told}: {gap}", "bold")]


def _first_steps(run: RunResult) -> list[tuple[str, str]]:
    """What was paid once, before anything was timed: compiling, above all."""
    found = []
    for one in run.variants:
        first_s = one.first_step_s or 0.0
        if one.time_s and first_s > max(_SETTING_UP_S, _SETTING_UP * one.time_s.median):
            told = f"its first step, which compiles or sets up, took {seconds(first_s)}, apart from these times"
            found.append((f"{one.name}: {told}", ""))
    return found


def _page_faults(run: RunResult) -> list[tuple[str, str]]:
    """Variants whose steps touch fresh memory: a cost that no line of their code shows."""
    found = []
    for one in run.variants:
        faults = (one.faults_per_block or 0) / (one.steps_per_block or 1)
        if faults >= _MANY_FAULTS:
            told = (
                f"{faults:,.0f} page faults a step: {byte_count(faults * _PAGE)} of memory touched for the first time"
            )
            found.append((f"{one.name}: {told}", ""))
    return found


def _both_clocks(run: RunResult) -> list[tuple[str, str]]:
    """On a GPU: what each variant takes on the host's clock, launches included, and on the device's own."""
    told = [
        f"{one.name} {seconds(one.clocks['wall'])} / {seconds(one.clocks['device'])}"
        for one in run.variants
        if len(one.clocks) > 1
    ]
    return [(f"wall / device clock: {', '.join(told)}", "")] if told else []


def claims(run: RunResult) -> list[tuple[str, str]]:
    """What the source promises beside what was measured: lines with their styles."""
    found = []
    if run.claim:
        live = run.outcome == UNDER_WAY
        nothing, so_far = ("nothing yet", " so far") if live else ("nothing", "")
        measured = [
            f"{one.variant} {times(one.speedup)} ({one.verdict}{so_far})"
            for one in run.comparisons
            if one.speedup is not None and one.against == run.variants[0].name and one.verdict != "invalid"
        ]
        told = f"; measured here: {', '.join(measured) or nothing}" if run.comparisons or live else ""
        found.append((f"claim: {run.claim}{told}", ""))
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
