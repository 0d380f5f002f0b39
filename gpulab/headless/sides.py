"""`--compare` of two revisions, folders, files or Python environments: both sides measured anew, in
pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as replace_field
from datetime import UTC, datetime
from math import exp
from statistics import median
from time import monotonic
from typing import Any

import msgspec
from msgspec.structs import replace

from gpulab.catalog.findings import takes_arguments
from gpulab.core.findings import Finding
from gpulab.core.jobs import Measure, ScenarioFile, TimeFunctions
from gpulab.core.machine import Device
from gpulab.core.statuses import Conclusion, ExitCode, Shows, Verdict, conclusion_of
from gpulab.core.units import plural
from gpulab.features.compare.analysis import environment_findings, judged
from gpulab.features.compare.differences import changed_lines, differences_of
from gpulab.features.compare.findings import (
    imported_from_one_place,
    nothing_changed,
    side_failed,
    variant_on_one_side,
)
from gpulab.features.compare.measured import (
    FEWEST_PAIRS,
    Pairs,
    all_decided,
    is_interim_analysis,
    row_of,
)
from gpulab.features.compare.report import ComparisonReport, Row, ScenarioComparison, Side
from gpulab.features.gate.thresholds import Thresholds
from gpulab.headless.output import Terminal
from gpulab.options import Options, UsageError
from gpulab.session.drive import Interrupts, StoppedError
from gpulab.session.interleaved import InterleavedRunner, SideError
from gpulab.session.launch import why_not
from gpulab.session.provenance import (
    Ran,
    changed_lines_elsewhere,
    findings_of,
    is_same_code,
    ran,
)
from gpulab.session.requests import request_for
from gpulab.session.sides import HOW, Measured, sides_of
from gpulab.session.temporary import temporary_folder


def measure_sides(
    names: Sequence[str],
    options: Options,
    terminal: Terminal,
    demanded: Callable[[str], Thresholds],
) -> ComparisonReport:
    """Measure both sides until the verdict of each step is known, and whether it is slower than
    what is demanded of the scenario by its name. UsageError.
    """
    with Interrupts() as interrupts:
        with temporary_folder() as folder:
            sides = sides_of(names, options.what, folder)
            jobs = _job_of(sides[0], options), _job_of(sides[1], options)
            most_slower = demanded(sides[1].entry.name).slower
            comparison = _Comparison(sides, jobs, options, terminal, most_slower)
            with InterleavedRunner(sides, jobs, folder, options.timeout_s) as runner:
                interrupts.stop_with(runner.stop)
                report = comparison.of(runner)
        interrupts.end(answered=report.exit_code == ExitCode.INTERRUPTED)
        return report


def refuse_measuring(options: Options) -> None:
    """UsageError for what refines a measurement, where saved runs are compared."""
    for flag in options.given("time_s", "chosen", "arguments", "device", "seed", "smoke"):
        raise UsageError(f"{flag}: saved runs are not measured again; {HOW}")


def _job_of(side: Measured, options: Options) -> Measure | TimeFunctions:
    """Return what a worker would be told of it. UsageError where it cannot run in turns."""
    for name in side.functions:
        function = side.entry.text.callables.get(name)
        if function and function.required and options.arguments is None:
            reason = takes_arguments(name, arguments=list(function.required))
            raise UsageError(f"{side.name}: {name} cannot be called", reason)
    missing = None if side.functions else why_not(side.launch, options.device)
    if missing is not None:
        raise UsageError(f"{side.name} cannot run here", missing)
    own = replace_field(options, arguments=side.own(options.arguments))
    job = request_for(side.entry, own, side.functions).job
    assert isinstance(job, (Measure, TimeFunctions))
    one_by_one = job.exclusive or job.increasing_memory or job.ranks > 1
    if one_by_one or job.shows != Shows.SPEEDUP:
        raise UsageError(
            f"{side.entry.name} cannot run in turns with another of its kind: run it twice, and "
            "compare the run files"
        )
    return job


def measure_pairs(
    measure: Callable[[], None],
    pairs: Mapping[str, Pairs],
    options: Options,
    terminal: Terminal,
    most_slower: float | None,
) -> None:
    """Measure pair after pair until all that was asked for is known, or the time is over."""
    started = monotonic()
    done = 0
    while True:
        measure()
        done += 1
        if is_interim_analysis(done):
            ratios = [f"{name} {exp(-median(each.ratios)):.3f}x" for name, each in pairs.items()]
            terminal.note(f"{plural(done, 'pair')} of processes: {', '.join(ratios)}", "dim")
            if all_decided(pairs, most_slower):
                return
        passed_s = monotonic() - started
        next_s = passed_s / done if options.time_s else 0.0
        if passed_s + next_s < (options.time_s or 30.0):
            continue
        # where nobody says how long, and too few pairs are there for an interval
        if options.time_s or done >= FEWEST_PAIRS or passed_s > 300.0:
            return


class _Comparison:
    """One command: the probe of both sides, their outputs, their pairs."""

    def __init__(
        self,
        sides: tuple[Measured, Measured],
        jobs: tuple[Measure | TimeFunctions, Measure | TimeFunctions],
        options: Options,
        terminal: Terminal,
        most_slower: float | None,
    ) -> None:
        self._sides, self._jobs = sides, jobs
        self._options, self._terminal = options, terminal
        self._most_slower = most_slower
        self._at = datetime.now(UTC).isoformat(timespec="seconds")
        self._ran: tuple[Ran, Ran] | None = None
        self._differs: dict[str, str] = {}
        self._findings: list[Finding] = []
        self._is_same = False

    def of(self, runner: InterleavedRunner) -> ComparisonReport:
        """Measure both sides; what came out, also where one cannot be measured."""
        try:
            self._run(runner)
        except SideError as error:
            return self._failed(error)
        except StoppedError:
            return self._report(runner, ExitCode.INTERRUPTED)
        return self._report(runner)

    def _run(self, runner: InterleavedRunner) -> None:
        for side in self._sides:
            self._terminal.note(f"{side.name}: {_described(side)}", "dim")
        before, after = runner.probe()
        self._ran = first, second = ran(self._sides[0], before), ran(self._sides[1], after)
        self._findings += findings_of(first, second)
        elsewhere = any(each.code == imported_from_one_place.code for each in self._findings)
        if is_same_code(first, second) and not elsewhere:
            self._is_same = True
            return
        self._differs, found = runner.compare_outputs()
        self._findings += found
        measured = {name: each for name, each in runner.pairs.items() if name not in self._differs}
        if measured:
            measure_pairs(
                runner.measure_pair, measured, self._options, self._terminal, self._most_slower
            )

    def _report(self, runner: InterleavedRunner, code: ExitCode | None = None) -> ComparisonReport:
        assert self._ran is not None or code is not None
        rows = []
        if runner.pairs and not self._is_same:
            against = {info.name: info.against for info in self._jobs[1].subject.variants}
            rows = [
                row_of(name, runner.pairs, self._differs.get(name, ""), against.get(name))
                for name in runner.pairs
            ]
        findings = list(self._findings)
        if self._is_same and self._ran:
            findings.append(nothing_changed(files=len(self._ran[1].files)))
        wrong = any(row.verdict == Verdict.WRONG for row in rows)
        outcome = Conclusion.WRONG if wrong else Conclusion.MEASURED
        if self._ran:
            findings += self._on_one_side(runner)
        report = self._of(rows, findings, outcome)
        if code is None and not self._is_same:
            return judged(report)
        code = code or ExitCode.MEASURED
        return replace(report, outcome=conclusion_of(code), exit_code=code)

    def _failed(self, error: SideError) -> ComparisonReport:
        reason = side_failed(side=error.side, message=str(error))
        report = self._of([], [], Conclusion.FAILED)
        return replace(report, outcome=Conclusion.FAILED, exit_code=ExitCode.FAILED, reason=reason)

    def _on_one_side(self, runner: InterleavedRunner) -> list[Finding]:
        assert self._ran is not None
        found = []
        for letter, each in zip("AB", self._ran, strict=True):
            shared = runner.names if letter == "A" else runner.names.values()
            found += [
                variant_on_one_side(name, side=letter)
                for name in each.probe.step_s
                if name not in shared
            ]
        return found

    def _of(
        self, rows: list[Row], findings: list[Finding], outcome: Conclusion
    ) -> ComparisonReport:
        a = self._side(0, outcome)
        b = self._side(1, outcome)
        differences = differences_of(a, b)
        lines = changed_lines(self._sides[0].entry.source, self._sides[1].entry.source)
        if self._ran:
            lines = [*lines, *changed_lines_elsewhere(*self._ran)]
        comparison = ScenarioComparison(
            scenario=b.scenario,
            title=self._sides[1].entry.title,
            a=a,
            b=b,
            differences=differences,
            changed_lines=lines[:1_000],
            changed_line_count=len(lines),
            rows=rows,
            findings=[*environment_findings(differences), *findings],
        )
        return ComparisonReport(
            before=self._sides[0].name, after=self._sides[1].name, comparisons=[comparison]
        )

    def _side(self, number: int, outcome: Conclusion) -> Side:
        side, job = self._sides[number], self._jobs[number]
        probe = self._ran[number].probe if self._ran else None
        subject = job.subject
        return Side(
            name=side.name,
            scenario=side.entry.name,
            at=self._at,
            outcome=outcome,
            device=_device(probe.device, job) if probe else None,
            environment=dict(probe.versions) if probe else {},
            params=dict(subject.params) if isinstance(subject, ScenarioFile) else {},
            source_sha256=side.entry.sha256,
            quick=job.quick,
            smoke=job.smoke,
            revision=side.revision,
            python=side.python,
            file=str(side.file.relative_to(side.root)),
            files=dict(self._ran[number].files) if self._ran else {},
        )


def _described(side: Measured) -> str:
    if side.lfs_pointers:
        pointers = plural(side.lfs_pointers, "file")
        return (
            f"commit {side.revision[:12]}, where {pointers} of Git LFS are pointers, not contents"
        )
    if side.revision:
        return f"commit {side.revision[:12]}"
    return str(side.root)


def _device(described: Mapping[str, Any], job: Measure | TimeFunctions) -> Device:
    if described:
        return msgspec.convert(described, Device)
    return Device(kind="cpu", name="CPU", threads=job.threads)
