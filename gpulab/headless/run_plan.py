"""What one command runs and where its files go: every mistake in it is found before the first measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from gpulab.headless.options import Options
from gpulab.headless.output import check_json, check_run_file
from gpulab.headless.plot import check_plot
from gpulab.protocol.jobs import RunRequest
from gpulab.report.report import RunReport
from gpulab.session.launch import Launch, launches_of, plan, sweep_launches
from gpulab.session.run_files import default_path
from gpulab.session.settings import UsageError


@dataclass(frozen=True)
class PlannedRun:
    """One run, with its files; `request` is a report where it cannot run here."""

    launch: Launch
    request: RunRequest | RunReport
    path: Path
    picture: Path | None


def plan_runs(names: Sequence[str], options: Options) -> list[PlannedRun]:
    """Everything that the names stand for. UsageError, ScenarioNotFoundError."""
    launches = [launch for name in names for launch in launches_of(name)]
    if options.sweep is not None:
        launches = [point for launch in launches for point in sweep_launches(launch, options.sweep, options)]
    _check(launches, options)
    several = len({launch.entry.path for launch in launches}) > 1
    requests = [plan(launch, options, several=several) for launch in launches]
    paths = _paths(launches, options)
    check_json(options.json_file, paths)
    if options.trace and options.trace.resolve() in {path.resolve() for path in (*paths, Path(options.json or "-"))}:
        raise UsageError(f"--trace {options.trace}: that is where the run file or --json goes")
    pictures = _pictures(launches, options)
    if options.trace and len({launch.label for launch in launches}) < len(launches):
        raise UsageError("--trace: two of the runs have the same name; run them one by one")
    planned = []
    for launch, request, path, picture in zip(launches, requests, paths, pictures, strict=True):
        if isinstance(request, RunRequest):
            request = _with_own_trace(request, launch.label) if len(launches) > 1 else request
        planned.append(PlannedRun(launch, request, path, picture))
    return planned


def _check(launches: Sequence[Launch], options: Options) -> None:
    if not launches:
        raise UsageError("there is nothing to run: no scenario was found")
    if options.required_speedup and any(launch.functions for launch in launches):
        raise UsageError("--fail-below: plain functions are not compared; put them into a scenario (--new FILE)")
    available = {name for launch in launches if launch.entry.scenario for name in launch.entry.scenario.params}
    for name in options.chosen:
        if len(launches) > 1 and name not in available:
            raise UsageError(f"--set {name}=...: none of the scenarios has such a parameter")


def _with_own_trace(request: RunRequest, label: str) -> RunRequest:
    """Of several runs each trace has the run's label in its name."""
    if request.profile is None or request.profile.trace is None:
        return request
    trace = Path(request.profile.trace)
    return replace(request, profile=replace(request.profile, trace=str(trace.with_stem(f"{trace.stem}-{label}"))))


def _paths(launches: Sequence[Launch], options: Options) -> list[Path]:
    """Where each run file goes. UsageError where one is there already, or two would be one."""
    labels = [launch.label for launch in launches]
    if options.output is None:
        return [default_path(f"{label}-{number}" if number else label) for number, label in enumerate(labels)]
    paths = [options.output / f"{label}.jsonl" for label in labels] if len(labels) > 1 else [options.output]
    for path in paths:
        check_run_file(path)
    if len(set(paths)) < len(paths):
        raise UsageError("--output: two of the runs have the same name; run them one by one")
    return paths


def _pictures(launches: Sequence[Launch], options: Options) -> list[Path | None]:
    """Where each run's picture goes: of several, each has the run's label in its name. UsageError."""
    target = options.plot
    if target is None:
        return [None] * len(launches)
    if options.json_file == target:
        raise UsageError(f"--plot {target}: that is where --json goes")
    several = len(launches) > 1
    pictures = [target.with_stem(f"{target.stem}-{launch.label}") if several else target for launch in launches]
    if len(set(pictures)) < len(pictures):
        raise UsageError("--plot: two of the runs have the same name; run them one by one")
    for picture in pictures:
        check_plot(picture)
    return [*pictures]
