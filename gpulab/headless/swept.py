"""`--sweep`: the runs of each scenario that is swept, its final, and what they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpulab.headless.options import Options
from gpulab.headless.run_plan import PlannedRun
from gpulab.headless.terminal import Terminal
from gpulab.protocol.jobs import Measure, RunRequest
from gpulab.report.command_report import Sweep
from gpulab.report.report import RunReport
from gpulab.report.sweeps import finalists_of, sweep_of
from gpulab.session.run_files import default_path
from gpulab.session.sweep_final import final_request
from gpulab.views.sweep import sweep_view
from gpulab.views.text import plural


@dataclass
class SweptScenario:
    """One scenario with its points, as far as they were made, and its final."""

    parameter: str
    planned: Sequence[PlannedRun]
    reports: Sequence[RunReport]
    final: RunReport | None = None

    @property
    def request(self) -> RunRequest | None:
        """Of the final; None where there is none."""
        points = [planned_run.request for planned_run in self.planned if isinstance(planned_run.request, RunRequest)]
        return final_request(points, self.parameter, finalists_of(self.parameter, self.reports))

    @property
    def announcement(self) -> str:
        request = self.request
        count = len(request.job.subject.variants) if request and isinstance(request.job, Measure) else 0
        return f"{replace(self.planned[0].launch, point=None).label} final: {plural(count, 'point')} in turn"

    @property
    def sweep(self) -> Sweep:
        return sweep_of(self.parameter, self.reports, self.final)

    def path(self, options: Options) -> Path:
        """Of the final's run file: beside those of the points."""
        first = self.planned[0]
        label = replace(first.launch, point=("final", self.parameter)).label
        return first.path.with_name(f"{label}.jsonl") if options.output else default_path(label)


def swept_scenarios(planned: Sequence[PlannedRun], reports: Sequence[RunReport]) -> list[SweptScenario]:
    """Every scenario that is swept, with the runs that were made, should they have been interrupted."""
    groups: dict[tuple[Path, str], list[tuple[PlannedRun, RunReport]]] = {}
    for planned_run, report in zip(planned, reports, strict=False):
        if point := planned_run.launch.point:
            groups.setdefault((planned_run.launch.entry.path, point[0]), []).append((planned_run, report))
    return [
        SweptScenario(parameter, [planned_run for planned_run, _ in runs], [report for _, report in runs])
        for (_, parameter), runs in groups.items()
    ]


def show_sweeps(swept: Sequence[SweptScenario], terminal: Terminal) -> None:
    """Print each sweep, and where its files are."""
    for scenario in swept:
        width = terminal.results.width
        drawn = sweep_view(scenario.sweep, scenario.reports, terminal.glyphs, width)
        terminal.results.print(drawn, "", sep="\n")
        reports = [*scenario.reports, *([scenario.final] if scenario.final else [])]
        terminal.say(*(f"run file: {report.run_file}" for report in reports if report.run_file))
