"""Two sides of saved runs to what is reported of them.

Where both sides have a comparison of a variant with the same one, their speedups are compared, each
paired within its run. What is compared with nothing, such as the baseline itself, has its times
alone: these are unpaired.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean

from msgspec.structs import replace

from gpulab.core.estimate import Estimate
from gpulab.core.events import RunStarted
from gpulab.core.findings import Finding
from gpulab.core.jobs import subject_of
from gpulab.core.statuses import (
    BoundKind,
    Conclusion,
    ExitCode,
    Per,
    Verdict,
    conclusion_of,
    first_in_order,
)
from gpulab.features import present
from gpulab.features.compare import findings
from gpulab.features.compare.differences import changed_lines, device_name, differences_of
from gpulab.features.compare.report import (
    ComparisonReport,
    Difference,
    DifferenceKind,
    Pairing,
    Row,
    ScenarioComparison,
    Side,
)
from gpulab.report.report import RunReport, fields_of
from gpulab.report.state import RunState
from gpulab.stats.comparison import Comparison, compare
from gpulab.stats.separate_runs import (
    COMPUTE_SPREAD,
    MEMORY_SPREAD,
    SPEEDUP_SPREAD,
    are_in_turn,
    difference,
    least_difference,
)

_MOST_LINES = 1_000
_CONTENDED = 0.05
_REFUSED = (Verdict.WRONG, Verdict.INVALID)
_WITHOUT_RESULT = (Conclusion.FAILED, Conclusion.INTERRUPTED, Conclusion.SKIPPED)
_COUNTS = (Conclusion.FAILED, Conclusion.WRONG, Conclusion.INVALID)
"""Of the runs after a change: these end the command with their own code."""


@dataclass(frozen=True)
class SavedRun:
    """A run as far as it is compared. `values` are what each process measured, in their order: by
    (variant,) seconds per item, by (variant, against) log-ratios of times.
    """

    report: RunReport
    values: Mapping[tuple[str, ...], Sequence[float]]
    source: str = ""
    host: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        """Return what runs have in common that may be one side together."""
        report = self.report
        return report.scenario, device_name(report.device), *sorted(report.params.items())


def saved_run(report: RunReport, state: RunState) -> SavedRun:
    """A run that was folded whole."""
    started = state.last(RunStarted)
    subject = subject_of(started.request.job) if started else None
    samples = state.samples.view()
    return SavedRun(
        report=report,
        values={key: samples.units(key) for key in state.samples.series},
        source=subject.source if subject else "",
        host=started.host if started else "",
    )


def compare_sides(
    before: str, after: str, a: Sequence[SavedRun], b: Sequence[SavedRun]
) -> ComparisonReport:
    """Two sides by their names: runs of one scenario, or of many, each with what is most like it on
    the other side.
    """
    matched, alone = _matched(a, b)
    comparisons = [compare_runs(before, after, *runs) for runs in matched]
    left = [
        findings.on_one_side(
            scenario=runs[0].report.scenario,
            device=device_name(runs[0].report.device),
            side=name,
        )
        for name, runs in alone
    ]
    return judged(
        ComparisonReport(before=before, after=after, comparisons=comparisons, findings=left)
    )


def judged(report: ComparisonReport) -> ComparisonReport:
    """With its exit code, as far as no gate is asked for: that of runs after the change that have
    no result, and 3 where nothing could be compared.
    """
    codes = [
        ExitCode[each.b.outcome.name] for each in report.comparisons if each.b.outcome in _COUNTS
    ]
    code = first_in_order(codes)
    reason = None
    if code == ExitCode.MEASURED and not any(each.rows for each in report.comparisons):
        code = ExitCode.FAILED
        alone = [each for comparison in report.comparisons for each in comparison.findings]
        lessons = (each for each in alone if each.code == findings.different_lessons.code)
        reason = next(lessons, findings.nothing_in_common())
    return replace(report, outcome=conclusion_of(code), exit_code=code, reason=reason)


def compare_runs(
    before: str, after: str, a: Sequence[SavedRun], b: Sequence[SavedRun]
) -> ScenarioComparison:
    """The runs of one scenario on each side, at least one."""
    first = _side(before, a)
    second = _side(after, b)
    if _are_different_lessons(first.scenario, second.scenario):
        return _of_different_lessons(first, second)
    differences = differences_of(first, second)
    lines = changed_lines(_last(a).source, _last(b).source)
    if not _last(a).source or not _last(b).source:
        lines = []
    rows = list(_rows(a, b))
    return ScenarioComparison(
        scenario=second.scenario,
        title=_last(b).report.title,
        a=first,
        b=second,
        differences=differences,
        changed_lines=lines[:_MOST_LINES],
        changed_line_count=len(lines),
        rows=rows,
        findings=[
            *environment_findings(differences),
            *_not_whole("A", first),
            *_not_whole("B", second),
            *_mixed("A", a),
            *_mixed("B", b),
            *_contended("A", a),
            *_contended("B", b),
            *_variants_alone(a, b),
            *_about_separate_runs(a, b, rows),
        ],
    )


def _are_different_lessons(a: str, b: str) -> bool:
    """Return whether two runs have no code in common; the user's own files may be renamed."""
    course = present("course.report")
    return a != b and course is not None and {a, b} <= course.lesson_places().keys()


def _of_different_lessons(a: Side, b: Side) -> ScenarioComparison:
    """Return both sides, and that there is nothing to compare."""
    return ScenarioComparison(
        scenario=f"{a.scenario}, {b.scenario}",
        title=f"{a.scenario} and {b.scenario}",
        a=a,
        b=b,
        findings=[findings.different_lessons(first=a.scenario, second=b.scenario)],
    )


def environment_findings(differences: Sequence[Difference]) -> list[Finding]:
    """That the environment changed, where it did."""
    changes = [each for each in differences if each.kind == DifferenceKind.ENVIRONMENT]
    if not changes:
        return []
    return [
        findings.environment_changed(
            what=[each.what for each in changes],
            before=[each.a or "none" for each in changes],
            after=[each.b or "none" for each in changes],
        )
    ]


_Group = list[SavedRun]


def _matched(
    a: Sequence[SavedRun], b: Sequence[SavedRun]
) -> tuple[list[tuple[_Group, _Group]], list[tuple[str, _Group]]]:
    """Groups with the same scenario, device and parameters; then what is the only one left of its
    scenario on both sides; and a single group of each side, whatever its scenario.
    """
    first, second = _groups(a), _groups(b)
    matched = []
    for key in [key for key in first if key in second]:
        matched.append((first.pop(key), second.pop(key)))
    for scenario in dict.fromkeys(str(key[0]) for key in first):
        left = [key for key in first if key[0] == scenario]
        others = [key for key in second if key[0] == scenario]
        if len(left) == len(others) == 1:
            matched.append((first.pop(left[0]), second.pop(others[0])))
    if not matched and len(first) == len(second) == 1:
        matched.append((first.popitem()[1], second.popitem()[1]))
    alone = [("A", group) for group in first.values()]
    return matched, alone + [("B", group) for group in second.values()]


def _groups(runs: Sequence[SavedRun]) -> dict[tuple[object, ...], _Group]:
    groups: dict[tuple[object, ...], _Group] = {}
    for run in runs:
        groups.setdefault(run.key, []).append(run)
    return groups


def _last(runs: Sequence[SavedRun]) -> SavedRun:
    return max(runs, key=lambda run: run.report.at)


def _side(name: str, runs: Sequence[SavedRun]) -> Side:
    last = _last(runs)
    report = last.report
    outcomes = {run.report.outcome for run in runs}
    baseline = report.variants[0] if report.variants else None
    telemetry = report.telemetry
    return Side(
        name=name,
        scenario=report.scenario,
        run_files=[run.report.run_file for run in runs],
        host=last.host,
        at=report.at,
        # an output that is wrong once is wrong, however many runs had another
        outcome=next(
            (each for each in (Conclusion.WRONG, Conclusion.MEASURED) if each in outcomes),
            report.outcome,
        ),
        device=report.device,
        environment=report.environment,
        power_limit_w=telemetry.limits.get("power") if telemetry else None,
        sm_mhz=baseline.sm_mhz if baseline else None,
        params=report.params,
        source_sha256=report.source_sha256,
        smoke=report.smoke,
        quick=report.quick,
    )


def _rows(a: Sequence[SavedRun], b: Sequence[SavedRun]) -> Iterator[Row]:
    """A row for each variant that both have, in the order of B."""
    report = _last(b).report
    others = {variant.name for variant in _last(a).report.variants}
    for variant in report.variants:
        if variant.name not in others:
            continue
        name = variant.name
        row = _refused(name, a, b) or _speedup_row(name, a, b) or _time_row(name, a, b)
        if row:
            yield row


def _refused(name: str, a: Sequence[SavedRun], b: Sequence[SavedRun]) -> Row | None:
    """Return the row of a variant that has no speedup on a side, since its output is wrong in any
    run or it was measured unfairly in all of them; else None.
    """
    for runs in (b, a):
        entries = [entry for run in runs if (entry := _first_comparison(run, name))]
        refused = [entry for entry in entries if entry.verdict in _REFUSED]
        wrong = [entry for entry in refused if entry.verdict == Verdict.WRONG]
        if wrong or (refused and len(refused) == len(entries)):
            last = (wrong or refused)[-1]
            return Row(
                variant=name,
                against=last.against,
                pairing=Pairing.WITHIN_RUNS,
                verdict=last.verdict,
                reason=last.reason,
            )
    return None


def _first_comparison(run: SavedRun, name: str) -> Comparison | None:
    entries = [entry for entry in run.report.first_comparisons if entry.variant == name]
    return entries[0] if entries else None


def _speedup_row(name: str, a: Sequence[SavedRun], b: Sequence[SavedRun]) -> Row | None:
    """Its speedups over its own baselines; None where a side has none, or over another variant."""
    entries = [[entry for run in runs if (entry := _claimed(run, name))] for runs in (a, b)]
    against = {entry.against for of_side in entries for entry in of_side}
    if not all(entries) or len(against) != 1:
        return None
    key = name, against.pop()
    values = [[run.values.get(key, ()) for run in runs if _claimed(run, name)] for runs in (a, b)]
    row = _compared(name, values[0], values[1], SPEEDUP_SPREAD, in_turn=_in_turn(a, b), ratios=True)
    first, second = _speedup(entries[0]), _speedup(entries[1])
    return replace(
        row,
        against=key[1],
        a=first,
        b=second,
        own_speedup=second,
        pairing=Pairing.WITHIN_RUNS,
    )


def _claimed(run: SavedRun, name: str) -> Comparison | None:
    """Its comparison, where that has a speedup."""
    entry = _first_comparison(run, name)
    return entry if entry and entry.speedup else None


def _speedup(entries: Sequence[Comparison]) -> Estimate:
    return _over_runs([entry.speedup for entry in entries if entry.speedup])


def _over_runs(estimates: Sequence[Estimate]) -> Estimate:
    """That of one run, or the geometric mean of several."""
    if len(estimates) == 1:
        return replace(estimates[0], n=None)
    logs = [log(estimate.value) for estimate in estimates]
    return Estimate(value=exp(fmean(logs)), n=len(logs))


def _time_row(name: str, a: Sequence[SavedRun], b: Sequence[SavedRun]) -> Row | None:
    """Its times in separate runs; None where a side has none, or they are per step on one side and
    per item on the other.
    """
    timed = [[run for run in runs if _time(run, name)] for runs in (a, b)]
    if not all(timed) or len({run.report.per for runs in timed for run in runs}) > 1:
        return None
    spread = _spread_of_times(name, a, b)
    values = [[_logs_of_times(run, name) for run in runs] for runs in timed]
    row = _compared(name, values[0], values[1], spread, in_turn=_in_turn(a, b), ratios=False)
    return replace(row, a=_over_runs(_times(a, name)), b=_over_runs(_times(b, name)))


def _times(runs: Sequence[SavedRun], name: str) -> list[Estimate]:
    return [time for run in runs if (time := _time(run, name))]


def _spread_of_times(name: str, *sides: Sequence[SavedRun]) -> float:
    bounds = {_bound(run, name) for runs in sides for run in runs if _time(run, name)}
    return COMPUTE_SPREAD if bounds == {BoundKind.COMPUTE} else MEMORY_SPREAD


def _logs_of_times(run: SavedRun, name: str) -> list[float]:
    """Return the logarithms of the times shown, in seconds per step or per item."""
    items = run.report.variant(name).items or 1.0
    scale = items if run.report.per == Per.STEP else 1.0
    return [log(value * scale) for value in run.values.get((name,), ())]


def _time(run: SavedRun, name: str) -> Estimate | None:
    return next((time for variant, time in run.report.timed if variant.name == name), None)


def _bound(run: SavedRun, name: str) -> BoundKind | None:
    cause = run.report.variant(name).cause
    return cause.bound if cause else None


def _in_turn(a: Sequence[SavedRun], b: Sequence[SavedRun]) -> bool:
    return are_in_turn([run.report.at for run in a], [run.report.at for run in b])


def _compared(
    name: str,
    a: Sequence[Sequence[float]],
    b: Sequence[Sequence[float]],
    spread: float,
    *,
    in_turn: bool,
    ratios: bool,
) -> Row:
    """The row of logarithms of times, or of ratios of times."""
    theta = difference(a, b, spread, in_turn=in_turn, ratios=ratios)
    fewest = min(len(run) for run in (*a, *b))
    result = compare((name, name), theta, pairs=0, units=fewest)
    return Row(
        variant=name,
        **fields_of(result, "mde", "verdict", "reason"),
        ratio=result.speedup,
    )


def _mixed(side: str, runs: Sequence[SavedRun]) -> Iterator[Finding]:
    """That runs of one side differ in what they ran with."""
    last = _side(side, [_last(runs)])
    what: dict[str, None] = {}
    for run in runs:
        for each in differences_of(_side(side, [run]), last):
            if each.kind in (DifferenceKind.ENVIRONMENT, DifferenceKind.SOURCE):
                what[each.what] = None
    if what:
        yield findings.mixed_side(side=side, what=list(what))


def _not_whole(letter: str, side: Side) -> Iterator[Finding]:
    if side.outcome in _WITHOUT_RESULT:
        yield findings.run_not_whole(side=letter, outcome=side.outcome)


def contention(report: RunReport) -> float:
    """The largest share of the time in which a variant's thread did not run; 0 where it is too
    small to matter.
    """
    share = max((variant.contention or 0.0 for variant in report.variants), default=0.0)
    return share if share >= _CONTENDED else 0.0


def _contended(side: str, runs: Sequence[SavedRun]) -> Iterator[Finding]:
    if share := max(contention(run.report) for run in runs):
        yield findings.side_contended(side=side, share=share)


def _variants_alone(a: Sequence[SavedRun], b: Sequence[SavedRun]) -> Iterator[Finding]:
    first = [variant.name for variant in _last(a).report.variants]
    second = [variant.name for variant in _last(b).report.variants]
    for name in first:
        if name not in second:
            yield findings.variant_on_one_side(name, side="A")
    for name in second:
        if name not in first:
            yield findings.variant_on_one_side(name, side="B")


def _about_separate_runs(
    a: Sequence[SavedRun], b: Sequence[SavedRun], rows: Sequence[Row]
) -> Iterator[Finding]:
    """The least change that runs at separate times can show."""
    in_turn = _in_turn(a, b)
    spreads: dict[Pairing, float] = {}
    for row in rows:
        if row.ratio is not None:
            paired = row.pairing == Pairing.WITHIN_RUNS
            spread = SPEEDUP_SPREAD if paired else _spread_of_times(row.variant, a, b)
            spreads[row.pairing] = max(spread, spreads.get(row.pairing, 0.0))
    least = {
        pairing: least_difference(len(a), len(b), spread, in_turn=in_turn)
        for pairing, spread in spreads.items()
    }
    if any(least.values()):
        yield findings.separate_runs(
            speedup=least.get(Pairing.WITHIN_RUNS),
            time=least.get(Pairing.UNPAIRED),
            in_turn=in_turn,
        )
