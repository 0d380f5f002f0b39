"""Of several runs of one command: their sweeps, and the exit code that counts."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.report.command_report import CommandReport, Sweep
from gpulab.report.exit_codes import conclusion_of, first_in_order
from gpulab.report.report import RunReport, VariantReport
from gpulab.scenario import Param


def sweep_of(parameter: str, runs: Sequence[RunReport]) -> Sweep:
    """The sweep that the runs are; a variant that was measured at one value only has no best."""
    points: dict[str, list[tuple[Param, VariantReport]]] = {}
    for run in runs:
        for variant in run.variants:
            if variant.time_s and parameter in run.params:
                points.setdefault(variant.name, []).append((run.params[parameter], variant))
    best, near = {}, {}
    for name, measured in points.items():
        if len(measured) < 2:
            continue
        value, fastest = min(measured, key=lambda point: _per_item(point[1])[0])
        best[name] = value
        highest = _per_item(fastest)[2]
        near[name] = [other for other, variant in measured if other != value and _per_item(variant)[1] <= highest]
    return Sweep(scenario=runs[0].scenario, parameter=parameter, best=best, near=near)


def combine(runs: list[RunReport], environment: dict[str, str | None], sweeps: Sequence[Sweep] = ()) -> CommandReport:
    """All runs of one command."""
    code = first_in_order(run.exit_code for run in runs)
    return CommandReport(
        outcome=conclusion_of(code), exit_code=code, environment=environment, runs=runs, sweeps=list(sweeps)
    )


def _per_item(variant: VariantReport) -> tuple[float, float, float]:
    """Seconds per item: median, low, high."""
    time, items = variant.time_s, variant.items or 1.0
    assert time is not None
    low, high = (time.median if end is None else end for end in (time.low, time.high))
    return time.median / items, low / items, high / items
