"""The table of a run and the lines below it. The same while it runs and when it has ended."""

from __future__ import annotations

from collections.abc import Container, Iterable

from gpulab.core.findings import Finding, Rank
from gpulab.core.jobs import Required
from gpulab.core.statuses import (
    CheckKind,
    CheckState,
    Clock,
    ExitCode,
    FailureKind,
    IntervalUnit,
    Per,
    Shows,
    Status,
    StopReason,
    Verdict,
)
from gpulab.core.text import without_boilerplate
from gpulab.core.units import (
    about,
    byte_count,
    interval,
    plural,
    plural_of,
    plus_minus,
    seconds,
    times,
)
from gpulab.draw.bars import bar
from gpulab.draw.blocks import Block, Group, Table, Text, columns_table
from gpulab.draw.styles import STYLES, with_star
from gpulab.features import part
from gpulab.features.checks.findings import state_diverges, state_not_named, state_not_restored
from gpulab.features.checks.view import grades
from gpulab.features.telemetry.fields import FIELDS, columns
from gpulab.report.findings import failed_after, solo_run_differs
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.sentences import lines, rank_of, sentence, sentence_with_place, with_reason
from gpulab.stats.comparison import Comparison
from gpulab.stats.verdicts import in_table, is_quotient, shown

Line = tuple[str, str]
"""Text and style."""
_HEADS = {
    Clock.WALL: "block, one wait",
    Clock.RETURN: "no wait",
    Clock.STEP: "wait each step",
    Clock.DEVICE: "device events",
}
_STOPPED = {
    StopReason.WIDTH: "intervals are narrow",
    StopReason.DECIDED: "effects are known",
    StopReason.SETTLED: "threshold decided",
    StopReason.TIME: "time is spent",
    StopReason.EPOCHS: "all rounds are done",
    StopReason.FAILED: "nothing is left to compare",
}


def clocks(report: RunReport) -> Block | None:
    """A row a variant, each clock beside the block of steps with one wait; None where clocks are
    not the lesson.
    """
    if report.shows != Shows.CLOCKS:
        return None
    known = [
        clock for clock in _HEADS if any(clock in variant.clocks_s for variant in report.variants)
    ]
    if len(known) < 2:
        return None
    table = columns_table()
    table.add_column("time of a step by", overflow="fold", min_width=7)
    for clock in known:
        table.add_column(_HEADS[clock], justify="right", no_wrap=True)
    for variant in report.variants:
        wall_s = variant.clocks_s.get(Clock.WALL)
        cells = []
        for clock in known:
            value = variant.clocks_s.get(clock)
            if not value:
                cells.append("")
            elif wall_s and clock != Clock.WALL:
                cells.append(f"{seconds(value)} {times(value / wall_s)}")
            else:
                cells.append(seconds(value))
        table.add_row(variant.name, *cells)
    legend = (
        "a block of steps with one wait at its end is what they take one after the other; "
        "without a wait the host's clock shows how long the calls take to return"
    )
    return Group(table, Text(legend, "dim"))


def _rank_in(report: RunReport, finding: Finding) -> Rank:
    """The rank of a finding; where sustained speedups are the headline, that they differ is a mere
    remark.
    """
    heading = any(
        comparison.sustained and comparison.sustained.headline_reason
        for comparison in report.comparisons
    )
    if heading and finding.code == solo_run_differs.code:
        return Rank.REMARK
    return rank_of(finding)


def conclusions(report: RunReport) -> list[str]:
    """Explanations that belong to the result, a line each."""
    return lines(finding for finding in report.explanations if rank_of(finding) != Rank.REMARK)


def notes(report: RunReport) -> tuple[list[str], list[str]]:
    """(remarks, what weakens the result), a line each; what changes the result most comes first."""
    remarks = [finding for finding in report.explanations if rank_of(finding) == Rank.REMARK]
    ranked = sorted(report.findings, key=lambda finding: _rank_in(report, finding))
    return lines(remarks), lines(ranked)


def comparison_table(
    report: RunReport, names: Container[str] | None = None, *, bars: int = 0
) -> Table:
    """A row a variant, one more for each further comparison, and the control; or only the rows of
    those named, and the control. Under way, verdicts are so far. `bars`: cells of the longest time
    as a bar, in the last column.
    """
    live = report.under_way
    table = columns_table()
    # Under way nothing jumps when a number comes in.
    longest = max((len(variant.name) for variant in report.variants), default=0)
    # letters of a name that stay in one line
    table.add_column("variant", overflow="fold", min_width=max(7, min(longest, 16)))
    table.add_column(
        f"time/{report.per}", justify="right", no_wrap=True, min_width=7 * live or None
    )
    table.add_column("±", justify="right", no_wrap=True, min_width=5 * live or None)
    if report.has_speedups:
        table.add_column("speedup", justify="right", no_wrap=True, min_width=8)
        table.add_column(
            "99 % interval", justify="right", no_wrap=True, min_width=14 * live or None
        )
        least = 12 + report.quick
        # "faster, at least 49x" goes on in a second line before a name is broken
        table.add_column("so far" if live else "verdict", no_wrap=live, min_width=least)
    else:
        table.add_column("", no_wrap=True)
    if bars:
        table.add_column("time from zero", no_wrap=True, width=bars)
    for index, variant in enumerate(report.variants):
        if names is not None and variant.name not in names:
            continue
        comparisons = [
            comparison for comparison in report.comparisons if comparison.variant == variant.name
        ]
        timing = _timing(report, variant)
        drawn = [_time_bar(report, variant, bars)] if bars else []
        if not report.has_speedups:
            table.add_row(*timing, _status(report, variant), *drawn)
            continue
        label = "baseline" if index == 0 else ""
        table.add_row(*timing, *_conclusion(report, variant, comparisons[:1], label), *drawn)
        for comparison in comparisons[1:] if names is None else ():
            against = Text(f"  vs {comparison.against}", style="dim")
            table.add_row(against, "", "", *_speedup(report, comparison))
    if report.control and report.control.speedup is not None and report.has_speedups:
        table.add_row(*_control(report, report.control))
    return table


def pairs_note(report: RunReport) -> str:
    """Explain speedups that are not the quotients of the times beside them; nothing where all
    are.
    """
    for comparison in report.comparisons:
        before = report.variant(comparison.against).time_per(report.per)
        after = report.variant(comparison.variant).time_per(report.per)
        speedup = comparison.speedup
        if not (speedup and before and after):
            continue
        if not is_quotient(speedup.value, before.value, after.value):
            return "speedups are of paired blocks, not quotients of the times"
    return ""


def _timing(report: RunReport, variant: VariantReport) -> list[Block]:
    name = Text(variant.name)
    time = variant.time_per(report.per)
    if time is None:
        return [name, "", ""]
    return [name, seconds(time.value), plus_minus(time)]


def _time_bar(report: RunReport, variant: VariantReport, cells: int) -> Text:
    """Its time, of which the longest takes all cells."""
    times_s = {each.name: each.time_per(report.per) for each in report.variants}
    longest = max((time.value for time in times_s.values() if time), default=0.0)
    time = times_s[variant.name]
    style = "blue" if variant.name == report.baseline else "cyan"
    return Text(bar(time.value / longest, cells) if time and longest else "", style)


def _conclusion(
    report: RunReport, variant: VariantReport, comparisons: list[Comparison], label: str
) -> list[Block]:
    """Speedup, interval and verdict of a variant, or its status without one."""
    if variant.status not in (Status.OK, Status.PENDING):
        # A late failure keeps the speedup of its complete pairs, without a verdict.
        for comparison in comparisons:
            if comparison.speedup is not None:
                return [*_speedup(report, comparison)[:2], _status(report, variant)]
        return ["", "", _status(report, variant)]
    if not comparisons:
        return [Text(label, style="dim"), "", _status(report, variant)]
    return _speedup(report, comparisons[0])


def _status(report: RunReport, variant: VariantReport) -> Text:
    """The status of a variant that was not measured; of a smoke run, whether its output agrees."""
    word = variant.status.value
    if variant.status in (Status.OK, Status.PENDING):
        word = _output_words(report, variant) if report.smoke else ""
    return Text(with_star(word, quick=report.quick), style=STYLES[variant.status])


def _output_words(report: RunReport, variant: VariantReport) -> str:
    comparison = report.comparison(variant.name)
    if comparison is None or comparison.trust is None:
        return ""
    outputs = {check.kind: check.state for check in comparison.trust.checks}
    agree = outputs[CheckKind.OUTPUTS] == CheckState.PASSED
    return "outputs agree" if agree else "outputs not compared"


def outcome_words(report: RunReport) -> str:
    """Describe what a run came to; a smoke run shows that all of it runs, and outputs agree."""
    if not report.smoke or report.exit_code != ExitCode.MEASURED:
        return with_star(report.outcome, quick=report.quick)
    said = {_output_words(report, variant) for variant in report.variants} - {""}
    return ", ".join(["runs", *sorted(said)])


def _speedup(report: RunReport, comparison: Comparison) -> list[Block]:
    verdict = Text(
        with_star(in_table(comparison), quick=report.quick), style=STYLES[comparison.verdict]
    )
    if comparison.verdict == Verdict.INVALID:
        return ["", "", verdict]
    if report.under_way and comparison.speedup is None:
        return [Text(about(report.preliminary_speedup(comparison)), style="dim"), "", ""]
    return [times(comparison.speedup), interval(comparison.speedup), verdict]


def _control(report: RunReport, control: Comparison) -> list[Block]:
    return [
        Text("control", style="dim"),
        "",
        "",
        Text(times(control.speedup), style="dim"),
        Text(interval(control.speedup), style="dim"),
        Text(with_star(control.verdict, quick=report.quick), style=STYLES[control.verdict]),
    ]


_BROKEN = (Status.FAILED, Status.WRONG, Status.INVALID, Status.OUT_OF_MEMORY)


def failure_causes(report: RunReport) -> list[Line]:
    """Why the run failed, then why variants failed or were skipped."""
    lines: list[Line] = []
    broken = [variant for variant in report.variants if variant.status in _BROKEN]
    measured = report.exit_code == ExitCode.MEASURED
    if report.reason and not measured and not _is_of_a_variant(report.reason, broken):
        text = sentence_with_place(report.reason)
        if report.exit_code != ExitCode.INCONCLUSIVE:  # of the gate: a verdict may say more
            text = f"{report.outcome}: {text}"
        lines.append((text, STYLES[Status.FAILED]))
    names_of: dict[Line, list[str]] = {}
    for variant in broken:
        text = str(variant.status)
        places = [variant.stage.value] if variant.stage else []
        if variant.line:
            places.append(f"line {variant.line}")
        if places:
            text += f" ({', '.join(places)})"
        text = with_reason(text, variant.reason)
        names_of.setdefault((text, STYLES[variant.status]), []).append(variant.name)
    lines += [(f"{', '.join(names)} {text}", style) for (text, style), names in names_of.items()]
    skipped: dict[str, list[str]] = {}
    for variant in report.variants:
        if variant.status == Status.SKIPPED and variant.reason:
            skipped.setdefault(sentence(variant.reason), []).append(variant.name)
    return lines + [
        (f"{', '.join(names)} skipped: {reason}", STYLES[Status.SKIPPED])
        for reason, names in skipped.items()
    ]


def short_run(report: RunReport) -> list[str]:
    """Say what a run that was kept short is not for; nothing of a whole run."""
    facts = []
    if report.smoke:
        facts.append("a smoke run: not for conclusions")
    if report.quick:
        facts.append("a quick run: wide intervals")
    return facts


def required(report: RunReport) -> list[Line]:
    """Return whether what was required is reached: of a failed run that is no exercise its reason
    says why not.
    """
    if report.under_way:
        return []
    if not report.exercise:
        return _reached(report)
    if report.fail_below is None:
        return []
    speedup = times(report.fail_below)
    what = f"exercise {report.exercise}"
    if report.exit_code == ExitCode.MEASURED:
        return [(f"{what}: passed (required: {speedup})", "bold green")]
    return [(f"{what}: not passed (required: {speedup}, and every check passed)", "bold")]


def _reached(report: RunReport) -> list[Line]:
    """By the comparison that is nearest to what is required of it."""
    demands = Required(every=report.fail_below, variants=report.fail_below_of)
    reached = [
        (entry.speedup.low / least, entry.speedup.low, least, entry.variant)
        for entry in report.comparisons
        if entry.speedup and entry.speedup.low and (least := demands.of(entry.variant))
    ]
    if report.exit_code != ExitCode.MEASURED or not reached:
        return []
    _, low, least, name = min(reached)
    text = f"passed: the interval of {name} begins at {times(low)} (required: {times(least)})"
    return [(text, "bold green")]


def claims(report: RunReport) -> list[Line]:
    """Claims of the scenario and of variants beside the measured speedups."""
    claimed: list[Line] = []
    if report.claim:
        claimed.append((f"claim: {report.claim}{_measured_here(report)}", ""))
    for variant in report.variants:
        comparison = report.comparison(variant.name)
        if variant.claim and comparison and comparison.speedup is not None:
            measured = _speedup_text(comparison)
            text = f"claim of {variant.name}: {variant.claim}; measured here: {measured}"
            claimed.append((text, ""))
    return claimed


def _measured_here(report: RunReport) -> str:
    """The speedups over the baseline, to stand behind the claim."""
    if not report.comparisons and not report.under_way:
        return ""
    so_far = " so far" if report.under_way else ""
    measured = []
    for comparison in report.comparisons:
        if comparison.speedup is not None and comparison.against == report.baseline:
            verdict = f"({shown(comparison).words}{so_far})"
            measured.append(f"{comparison.variant} {_speedup_text(comparison)} {verdict}")
    if not measured:
        return "; not measured yet" if report.under_way else "; not measured here"
    return f"; measured here: {', '.join(measured)}"


def _is_of_a_variant(reason: Finding, variants: Iterable[VariantReport]) -> bool:
    """Return whether one of the variants is listed with this reason."""
    for variant in variants:
        listed = variant.reason
        if variant.name == reason.variant and listed and listed.code == reason.code:
            return True
    return False


def figures(report: RunReport) -> list[Line]:
    """The sweet spot, and figures that the scenario reports."""
    lines: list[Line] = []
    if sweet_spot := report.get("sweet_spot"):
        from gpulab.features.memory.report import CLOSE  # which found it

        text = (
            f"sweet spot: {sweet_spot}, the first within {CLOSE:.0%} of the best time per "
            f"{report.item}"
        )
        lines.append((text, "bold"))
    for figure in report.figures:
        if figure.value is not None:
            name = figure.variant or report.scenario
            lines.append((f"{name}: {figure.name} {figure.value:g}", ""))
    return lines


def bounds(report: RunReport) -> list[Line]:
    """Return what a comparison excludes, or that it says little; why it has no interval."""
    if not report.has_speedups:
        return []
    return [
        (f"{entry.variant} against {entry.against}: {text}", "yellow")
        for entry in report.comparisons
        if (text := _bound(entry))
    ]


def _bound(comparison: Comparison) -> str:
    reason = comparison.reason
    unclear = comparison.verdict == Verdict.INCONCLUSIVE
    if reason and (unclear or reason.code == failed_after.code):
        return sentence(reason)
    found = shown(comparison)
    text = f"{found.words} ({interval(comparison.speedup)})"
    if unclear or (found.imprecise and found.bound):
        marked = ", imprecise" if not unclear else ""
        return f"{text}{marked}: more --time, or a quieter machine, narrows it"
    return ""


def note_lines(report: RunReport) -> list[Line]:
    """Findings that explain the result, then those that weaken it."""
    remarks, weakening = notes(report)
    lines = [(line, "") for line in [*conclusions(report), *remarks]]
    lines += [(f"note: {line}", "yellow") for line in weakening]
    if report.telemetry and report.telemetry.no_gpu_reason:
        style = "yellow" if report.on_gpu else "dim"
        lines.append((f"no GPU telemetry: {sentence(report.telemetry.no_gpu_reason)}", style))
    return lines


def against_earlier_runs(report: RunReport) -> list[Line]:
    """The range of earlier runs of the same scenario."""
    earlier = part("history.view:earlier_runs", report.comparisons)
    if earlier is None:
        return []
    return [(earlier, "dim")]


def method(report: RunReport) -> str:
    made = report.method
    noun, many = "build", made.epochs
    if made.unit == IntervalUnit.PROCESSES:
        noun, many = "process", made.processes
    facts = [
        f"{plural(many, noun)}, {plural(made.rounds, 'round')} of paired blocks, "
        f"{made.clock} clock, {made.cache} cache",
        f"interval over {plural_of(noun)}",
        f"floor {made.floor:.0%}",
    ]
    if report.item != Per.ITEM:
        facts.append(f"items are {plural_of(report.item)}")
    if made.stopped:
        facts.append(f"stopped: {_STOPPED[made.stopped]}")
    if made.empty_block_s:
        facts.append(f"empty block {seconds(made.empty_block_s)}")
    shares = [variant.contention for variant in report.variants if variant.contention is not None]
    if shares:
        facts.append(f"off the CPU up to {max(shares):.0%}")
    return " · ".join(facts)


def _speedup_text(comparison: Comparison) -> str:
    """The headline speedup."""
    sustained = comparison.sustained
    if sustained and sustained.headline_reason:
        return f"{times(sustained.speedup)} sustained"
    return times(comparison.speedup)


def texts(lines: Iterable[Line]) -> list[Block]:
    """Each line as a text of its own."""
    return [Text(line, style) for line, style in lines]


def failures(report: RunReport) -> Text:
    """The tracebacks of a failed run, and the last lines that the scenario printed."""
    text = Text()
    tracebacks = dict.fromkeys(
        without_boilerplate(failure.traceback).rstrip()
        for failure in report.failures
        if failure.traceback and failure.kind not in (FailureKind.CANCELLED, FailureKind.TIMEOUT)
    )
    for traceback in tracebacks:
        text.append(traceback + "\n", "dim")
    printed = [*report.log.head, *report.log.tail][-10:]
    cancelled = any(failure.kind == FailureKind.CANCELLED for failure in report.failures)
    if report.failures and printed and not cancelled:
        text.append("last output lines:\n" + "".join(f"  {line}\n" for line in printed), "dim")
    return text


def header(report: RunReport) -> Text:
    """Describe what ran, on what, with which parameters."""
    text = Text(report.scenario, style="bold")
    if report.title and report.title != report.scenario:
        text.append(f" · {report.title}")
    facts = []
    if report.device and report.on_gpu:
        facts.append(report.device.name)
    elif report.device:
        facts.append(f"{report.device.name}, {plural(report.device.threads, 'thread')}")
    if report.params:
        facts.append(" ".join(f"{name}={value}" for name, value in report.params.items()))
    facts += short_run(report)
    if facts:
        text.append("\n" + " · ".join(facts), style="not bold dim")
    return text


_MAY_STOP = {declared.code for declared in (state_diverges, state_not_named, state_not_restored)}
"""Doubts of a training of which the timed steps may be others than the checked ones."""


def _best(report: RunReport) -> str:
    """Name the best of several, where it beats the baseline, and its steps go on working."""
    if not report.best_among:
        return ""
    comparison = report.comparison(report.best_among[0])
    if comparison is None or comparison.verdict != Verdict.FASTER:
        return ""
    reasons = comparison.trust.reasons if comparison.trust else []
    if any(reason.code in _MAY_STOP for reason in reasons):
        return ""
    *most, last = report.best_among
    if most:
        return f"best: {', '.join(most)} or {last} (statistically tied)"
    return f"best: {last}" if report.method.comparisons > 1 else ""


def below_table(report: RunReport) -> list[Line]:
    """Grades, the best variant, and sustained speedups."""
    below = grades(report)
    if best := _best(report):
        below.append((best, ""))
    if sustained := part("alone.view:alone", report):
        below.append((sustained, "dim"))
    return below


def why_it_ended(report: RunReport) -> list[Line]:
    """An exit code of the program's own is no stage of a measurement that failed."""
    for variant in report.variants:
        if variant.reason:
            return [(f"{variant.name}: {sentence(variant.reason)}", STYLES[variant.status])]
    return failure_causes(report)


def telemetry_line(report: RunReport) -> str:
    """The highest of what was sampled of the device or, without one, of the host."""
    telemetry = report.telemetry
    if telemetry is None or not telemetry.readings:
        return ""
    figures = []
    for name in columns(host=telemetry.gpu is None):
        field, peak = FIELDS[name], telemetry.peaks.get(name)
        if peak is not None:
            value = byte_count(peak) if field.unit == "B" else f"{peak:.3g} {field.unit}"
            figures.append(f"{field.label} {value}")
    where = telemetry.gpu or "host"
    return f"{where}, at most: {', '.join(figures)}" if figures else ""
