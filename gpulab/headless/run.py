"""`--run`: one scenario, several, all of them, or plain functions; once, swept, or again and
again.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from gpulab.catalog.view import best_comparison, mark
from gpulab.commit import version
from gpulab.core.failures import worker_not_run
from gpulab.core.findings import Finding
from gpulab.core.jobs import Measure, Required, RunRequest, TimeFunctions
from gpulab.core.statuses import Conclusion, ExitCode, conclusion_of
from gpulab.core.units import duration, interval, seconds
from gpulab.draw.blocks import Block, Group, Text
from gpulab.draw.styles import QUICK
from gpulab.features import needed, part, present
from gpulab.features.goodput.job import with_from_start
from gpulab.headless.drive import drive
from gpulab.headless.export import export
from gpulab.headless.output import Terminal, open_terminal, say_sharing, write_json
from gpulab.headless.printed import show_failures, show_markdown, show_raw, show_report
from gpulab.headless.run_plan import PlannedRun, plan_runs
from gpulab.options import Options, UsageError
from gpulab.report.build import run_parts
from gpulab.report.commands import CommandReport, combine
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence, sentence_with_place
from gpulab.session.drive import Interrupts
from gpulab.session.launch import start
from gpulab.session.run_files import default_path
from gpulab.session.settings import check_counters
from gpulab.session.worker_process import READY
from gpulab.show.display import as_file

if TYPE_CHECKING:
    from gpulab.features.sweeps.runs import SweepRuns
    from gpulab.headless.gate import RunGate


def swept_scenarios(
    planned: Sequence[PlannedRun], reports: Sequence[RunReport], options: Options
) -> list[SweepRuns]:
    """Every scenario that is swept, with the runs that were made, should they have been
    interrupted.
    """
    sweeps: dict[tuple[object, ...], SweepRuns] = {}
    for planned_run, report in zip(planned, reports, strict=False):
        launch, request = planned_run.launch, planned_run.request
        if not launch.points:
            continue
        from gpulab.features.sweeps.runs import SweepRuns

        *others, (parameter, value) = launch.points
        whole = SweepRuns(replace(launch, points=tuple(others)), parameter, [], options)
        sweep = sweeps.setdefault((launch.entry.path, parameter, *others), whole)
        sweep.values.append(value)
        sweep.add(request if isinstance(request, RunRequest) else None, report)
    return list(sweeps.values())


def show_sweeps(swept: Sequence[SweepRuns], terminal: Terminal) -> None:
    """Print each sweep, and where its files are."""
    for scenario in swept:
        if scenario.label != scenario.sweep.scenario:
            terminal.say(scenario.label)
        drawn = part("sweeps.view:sweep_view", scenario.sweep, scenario.reports)
        terminal.results.print(drawn, "", sep="\n")
        for report in (*scenario.reports, scenario.final):
            if report and report.run_file:
                terminal.say(f"run file: {report.run_file}")


def curves(swept: Sequence[SweepRuns], target: Path) -> Iterator[tuple[Sequence[RunReport], Path]]:
    """The reports of each sweep, and where the picture of its curve goes; of several sweeps each
    has its scenario in its name.
    """
    for scenario in swept:
        timed = [report for report in scenario.reports if report.timed]
        if len(timed) > 1:
            stem = target.stem if len(swept) == 1 else f"{target.stem}-{scenario.label}"
            yield timed, target.with_stem(stem)


def run_line(report: RunReport, number: int, count: int, *, name_width: int = 0) -> Text:
    """One of several runs that has ended: its number, and what came out."""
    text = Text(f"{number:>{len(str(count))}} of {count}  {report.scenario:<{name_width}}  ")
    if report.exit_code not in (ExitCode.MEASURED, ExitCode.SLOWER, ExitCode.INCONCLUSIVE):
        text.append(report.outcome, "bold red")
        return text.append(f"  {sentence_with_place(report.reason)}" if report.reason else "")
    if report.functions:
        timed = (f"{each.name} {seconds(time.value)}" for each, time in report.timed)
        return text.append(", ".join(timed))
    best = mark(report)
    text.append(f"{best.text:>8} ").append(f"{best.verdict:<8}", best.style)
    comparison = best_comparison(report)
    if comparison is not None:
        text.append(f" {comparison.variant}  ")
        text.append(interval(comparison.speedup), "dim")
    return text


def ending(reports: Sequence[RunReport]) -> Block:
    """Below the lines of a library: what did not run, and for want of what."""
    parts: list[Block] = []
    skipped: dict[str, list[str]] = {}
    for report in reports:
        if report.outcome == Conclusion.SKIPPED and report.reason:
            skipped.setdefault(sentence(report.reason), []).append(report.scenario)
    for reason, names in skipped.items():
        parts.append(Text(f"{len(names)} skipped: {reason}: {', '.join(names)}", "dim"))
    if any(report.quick for report in reports):
        parts.append(Text(QUICK, "dim"))
    return Group(*parts)


def run(names: Sequence[str], options: Options) -> int:
    """Run them one after the other and print what came out; returns the exit code."""
    try:
        if options.seed is None and options.from_start is None:
            with suppress(OSError):  # it is told by the run
                READY.prepare(options.threads)  # it imports torch meanwhile
        return _run(names, options)
    finally:
        READY.close()


def _run(names: Sequence[str], options: Options) -> int:
    say_sharing(options)
    gate = _gate(options)
    planned = plan_runs(names, options, gate)
    nsys = needed("counters.nsys").NsysReport(options.nsys) if options.nsys else None
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    for reason in _missing_counters(planned, options):
        terminal.note(sentence(reason), "yellow")
    if gate:
        gate.announce(terminal)
    command = _Command(planned, options, gate, terminal)
    with Interrupts() as interrupts:  # a signal between two runs stops the second
        command.measure(interrupts)
    code = command.finish()
    if nsys is not None:
        record_steps = needed("counters.command").record_steps
        terminal.say(*record_steps(nsys, planned[0].request, command.reports[0]))
    return code


def _missing_counters(planned: Sequence[PlannedRun], options: Options) -> list[Finding]:
    """Why counters will be missing, by the first run that is made. UsageError."""
    for each in planned:
        job = each.request.job if isinstance(each.request, RunRequest) else None
        if isinstance(job, Measure | TimeFunctions):
            return check_counters(options, job.device, job.ranks)
    return []


def _gate(options: Options) -> RunGate | None:
    """None where the feature was taken out, whose flags are refused then."""
    if present("gate") is None:
        return None
    from gpulab.headless.gate import RunGate

    return RunGate(options)


class _Command:
    """All runs of one command: made one after the other, each shown as far as it is to be, then
    what they give.
    """

    def __init__(
        self,
        planned: Sequence[PlannedRun],
        options: Options,
        gate: RunGate | None,
        terminal: Terminal,
    ) -> None:
        self._planned, self._options, self._terminal = planned, options, terminal
        self._required_of = gate.required_of if gate else lambda _: Required()
        self._library = _is_library(planned, options)
        self._several = self._library or options.repeat is not None
        # of those that cannot run here there is a report in place of a request
        self._pending = [
            each for each in planned if getattr(each.request, "outcome", None) != Conclusion.SKIPPED
        ]
        self.reports: list[RunReport] = []
        self._swept: list[SweepRuns] = []
        self._environment: dict[str, str | None] = {
            "gpulab": version(),
            "torch": None,
            "driver": None,
            "python": platform.python_version(),
        }
        self._started = monotonic()

    def measure(self, interrupts: Interrupts) -> None:
        """Make every run; after one that was interrupted no other."""
        self._started = monotonic()
        count = len(self._planned)
        sweeping = bool(self._options.sweep)
        for number, planned_run in enumerate(self._planned, 1):
            report = self._report_of(
                planned_run, interrupts, number, last=number == count and not sweeping
            )
            self.reports.append(report)
            self._environment = report.environment or self._environment
            if self._several and planned_run in self._pending:
                self._say_what_came_out(report, self._place(planned_run) + 1)
            if report.exit_code == ExitCode.INTERRUPTED:
                break
        else:
            if sweeping:
                self._measure_finals(interrupts)

    def _heading(self, planned_run: PlannedRun) -> Text:
        """Return the heading of a run: its place among all, and how long all that are left take."""
        count, place = len(self._pending), self._place(planned_run)
        text = Text(f"{planned_run.label} ({place + 1} of {count})", "bold")
        if self._several and place:
            left_s = (monotonic() - self._started) / place * (count - place)
            text.append(f", about {duration(left_s)} left", "not bold dim")
        return text

    def _place(self, planned_run: PlannedRun) -> int:
        """Among the runs that are made, from 0."""
        return self._pending.index(planned_run) if planned_run in self._pending else 0

    def _say_what_came_out(self, report: RunReport, number: int) -> None:
        """A line as soon as a run has ended: of a library it is the result, of repetitions
        progress.
        """
        terminal = self._terminal
        names = max(len(planned_run.launch.entry.name) for planned_run in self._pending)
        line = run_line(report, number, len(self._pending), name_width=names)
        is_result = self._library and not self._options.markdown
        console = terminal.results if is_result else terminal.err
        if console.is_terminal:
            line.no_wrap = True
            line.overflow = "ellipsis"
        console.print(line, soft_wrap=not console.is_terminal)

    def finish(self) -> int:
        """Print and write what all of them give; returns the exit code."""
        reports, options, terminal = self.reports, self._options, self._terminal
        swept = self._swept or swept_scenarios(self._planned, reports, options)
        over_runs = part("repeats.report:repeat_reports", reports) if options.repeat else None
        command = combine(
            reports,
            self._environment,
            [scenario.sweep for scenario in swept],
            over_runs,
            required_of=self._required_of,
        )
        if over_runs is not None:
            terminal.show(part("repeats.view:repeats_view", over_runs))
            if command.reason:
                terminal.say(sentence(command.reason))
        elif options.sweep:
            show_sweeps(swept, terminal)
        elif self._library:
            terminal.show(ending(reports))
        elif len(reports) > 1:
            names = max(len(report.scenario) for report in reports)
            lines = [
                run_line(report, number, len(reports), name_width=names)
                for number, report in enumerate(reports, 1)
            ]
            terminal.show(Group(*lines, ending(reports)))
        if self._several and len(reports) > 1:
            terminal.say(f"run files: {self._planned[0].path.parent}")
        if options.json:
            write_json(command, options.json)
        if options.junit:
            self._write_junit(options.junit, command)
        files: list[tuple[Callable[[str], str | bytes], Path]] = []
        for planned_run, report in zip(self._planned, reports, strict=False):
            if report.run_file:
                files += [(partial(as_file, [report]), target) for target in planned_run.outputs]
        if options.plot:
            files += [(partial(as_file, each), path) for each, path in curves(swept, options.plot)]
        export(files, terminal)
        return command.exit_code

    def _write_junit(self, target: Path, command: CommandReport) -> None:
        from gpulab.features.gate.runs import cases_of_command
        from gpulab.headless.gate import write_junit

        cases = cases_of_command(command.runs, command.over_runs, self._required_of)
        write_junit(target, cases)

    def _report_of(
        self, planned_run: PlannedRun, interrupts: Interrupts, number: int, *, last: bool
    ) -> RunReport:
        """The report of one run, which is made where it can be."""
        terminal, several, options = self._terminal, self._several, self._options
        heading = self._heading(planned_run)
        report = planned_run.request
        if isinstance(report, RunRequest):
            if len(self._planned) > 1 and not (several and terminal.err.is_terminal):
                terminal.err.print(heading)
            try:
                live = start(report, planned_run.path)
            except UsageError as error:
                if number == 1:
                    raise
                # a disk that is full by now takes nothing from the others
                report = _not_started(planned_run, error)
            else:
                before = [heading] if several else []
                report = drive(live, interrupts, terminal, before=before, last=last).report
            show_failures(report, terminal)
        if options.from_start is not None:
            report = with_from_start(report, options.from_start)
        row = planned_run.launch.entry.row
        if isinstance(planned_run.request, RunReport) and row.recording and not several:
            name = planned_run.launch.entry.name
            terminal.note(f"a recording of it, made on {row.recording}: gpulab --replay {name}")
        alone = not planned_run.launch.points and planned_run.repetition == 0
        if options.markdown:
            show_markdown(report, terminal)
        elif alone and not self._library:
            if options.repeat:
                terminal.say(f"run 1 of {options.repeat}")
            show_report(report, terminal, options)
        elif options.raw:
            show_raw(report, terminal)
        return report

    def _measure_finals(self, interrupts: Interrupts) -> None:
        """Measure, of each scenario that was swept, the points that may be the best, in turn."""
        self._swept = swept_scenarios(self._planned, self.reports, self._options)
        finals = [scenario for scenario in self._swept if scenario.final_request is not None]
        for number, scenario in enumerate(finals, 1):
            request, label = scenario.final_request, scenario.final_label
            assert request is not None
            self._terminal.note(scenario.announcement, "bold")
            path = default_path(label, self._options.share)
            if self._options.output:
                path = self._options.output / f"{label}.jsonl"
            try:
                live = start(request, path)
            except UsageError as error:
                self._terminal.note(str(error), "yellow")
                continue
            run = drive(live, interrupts, self._terminal, last=number == len(finals))
            scenario.final = run.report
            show_failures(scenario.final, self._terminal)
            if scenario.final.exit_code == ExitCode.INTERRUPTED:
                break


def _not_started(planned_run: PlannedRun, error: UsageError) -> RunReport:
    entry, code = planned_run.launch.entry, ExitCode.FAILED
    reason = worker_not_run(message=str(error))
    return RunReport(
        scenario=entry.name,
        parts=run_parts(),
        outcome=conclusion_of(code),
        exit_code=code,
        reason=reason,
    )


def _is_library(planned: Sequence[PlannedRun], options: Options) -> bool:
    """Tell whether a whole library runs: then only results are shown, the rest is in run files."""
    files = {planned_run.launch.entry.path for planned_run in planned}
    return (
        len(files) > 1
        and not options.sweep
        and not any(planned_run.launch.named for planned_run in planned)
    )
