"""Of several runs of one command: their sweeps, and the exit code that counts."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.report.command_report import CommandReport, Sweep
from gpulab.report.exit_codes import conclusion_of, first_in_order
from gpulab.report.report import RunReport, Time
from gpulab.scenario import Param


def sweep_of(parameter: str, runs: Sequence[RunReport]) -> Sweep:
    """The sweep that the runs are; a variant that was measured at one value only has no best."""
    points: dict[str, list[tuple[Param, Time]]] = {}
    for run in runs:
        for variant in run.variants:
            if (time := variant.time_per_item) and parameter in run.params:
                points.setdefault(variant.name, []).append((run.params[parameter], time))
    best, near = {}, {}
    for name, measured in points.items():
        if len(measured) < 2:
            continue
        value, fastest = min(measured, key=lambda point: point[1].median)
        best[name] = value
        _, highest = fastest.ends
        near[name] = [other for other, time in measured if other != value and time.ends[0] <= highest]
    return Sweep(scenario=runs[0].scenario, parameter=parameter, best=best, near=near)


def combine(runs: list[RunReport], environment: dict[str, str | None], sweeps: Sequence[Sweep] = ()) -> CommandReport:
    """All runs of one command."""
    code = first_in_order(run.exit_code for run in runs)
    return CommandReport(
        outcome=conclusion_of(code), exit_code=code, environment=environment, runs=runs, sweeps=list(sweeps)
    )
