"""What one command runs and where its files go: every mistake in it is found before the first
measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpulab.core.jobs import Measure, RunRequest, TimeFunctions
from gpulab.core.statuses import CeilingChoice
from gpulab.headless.output import check_run_file
from gpulab.headless.written import check_output
from gpulab.options import Options, UsageError
from gpulab.report.report import RunReport
from gpulab.session.launch import Launch, launches_of, plan, sweep_launches
from gpulab.session.run_files import default_path

if TYPE_CHECKING:
    from gpulab.headless.gate import RunGate


@dataclass(frozen=True)
class PlannedRun:
    """One run, with its files; `request` is a report where it cannot run here. Repetitions are
    counted from 0.
    """

    launch: Launch
    request: RunRequest | RunReport
    path: Path
    outputs: Sequence[Path]
    """What is written of it besides: a page, a picture."""
    label: str
    repetition: int = 0


def plan_runs(names: Sequence[str], options: Options, gate: RunGate | None) -> list[PlannedRun]:
    """All runs that the names mean; repetitions as a whole. UsageError,
    ScenarioNotFoundError.
    """
    launches = []
    for name in names:
        for launch in launches_of(name):
            launches += sweep_launches(launch, options.sweep, options)
    _check(launches, options)
    several = len({launch.entry.path for launch in launches}) > 1
    if gate:
        gate.check(launches)
    requests = [
        plan(launch, _with_gate(launch, options, gate), several=several) for launch in launches
    ]
    labels = [launch.label for launch in launches]
    if options.trace and len(set(labels)) < len(labels):
        raise UsageError("--trace: two of the runs have the same name; run them one by one")
    pages = _files_of(labels, "export", options.export)
    pictures = _files_of(labels, "plot", options.plot)
    repetitions = range(options.repeat or 1)
    numbered = labels
    if options.repeat:  # sorted by name they are in their order
        digits = len(str(options.repeat))
        numbered = [f"{each}-{at + 1:0{digits}}" for at in repetitions for each in labels]
    paths = _paths(numbered, options)
    Path.cwd()  # which fails where that folder was deleted: torch would say that it is broken
    for target in (options.json_file, options.trace):
        if target in paths:
            raise UsageError(f"{target} is a run file, which is never overwritten")
    planned: list[PlannedRun] = []
    for repetition in repetitions:
        for launch, request, *files in zip(launches, requests, pages, pictures, strict=True):
            label, path = numbered[len(planned)], paths[len(planned)]
            if isinstance(request, RunRequest):
                if repetition and options.profile != "on":
                    request = _times_only(request)
                if repetition or len(launches) > 1:
                    request = _with_own_trace(request, label)
            outputs = [] if repetition else [file for file in files if file is not None]
            planned.append(PlannedRun(launch, request, path, outputs, label, repetition))
    return planned


def _with_gate(launch: Launch, options: Options, gate: RunGate | None) -> Options:
    """Leave what a repeated run must reach to all its repetitions together."""
    if gate is None or options.repeat or launch.functions:
        return options
    required = gate.required_of(launch.entry.name)
    return replace_fields(
        options, required_speedup=required.every, required_speedups=required.variants
    )


def _check(launches: Sequence[Launch], options: Options) -> None:
    if not launches:
        raise UsageError("there is nothing to run: no scenario was found")
    if options.nsys and len(launches) > 1:
        raise UsageError("--nsys FILE is of one run: name one scenario")
    if options.fail_below and any(launch.functions for launch in launches):
        raise UsageError(
            "--fail-below: plain functions are not compared; put them into a scenario (--new FILE)"
        )
    available: set[str] = set()
    for launch in launches:
        if launch.entry.scenario:
            available.update(launch.entry.scenario.params)
    for name in options.chosen:
        if len(launches) > 1 and name not in available:
            raise UsageError(f"--set {name}=...: none of the scenarios has such a parameter")


def _times_only(request: RunRequest) -> RunRequest:
    """Without what does not enter an interval over runs, and takes longer than it does. A GPU's
    ceilings are kept for good.
    """
    job = request.job
    if isinstance(job, (Measure, TimeFunctions)) and job.device == "cpu":
        job = replace(job, ceilings=CeilingChoice.NONE)
    return replace(request, job=job, profile=None, counters_s=None)


def _with_own_trace(request: RunRequest, label: str) -> RunRequest:
    """Put the run's label into the name of its trace, where there are several runs."""
    if request.profile is None or request.profile.trace is None:
        return request
    trace = Path(request.profile.trace)
    own = trace.with_stem(f"{trace.stem}-{label}")
    return replace(request, profile=replace(request.profile, trace=str(own)))


def _paths(labels: Sequence[str], options: Options) -> list[Path]:
    """Return the path of each run file. UsageError where one is there, or two would be one."""
    if options.output is None:
        return [
            default_path(f"{label}-{number}" if number else label, options.share)
            for number, label in enumerate(labels)
        ]
    paths = [options.output]
    if len(labels) > 1:
        paths = [options.output / f"{label}.jsonl" for label in labels]
    for path in paths:
        check_run_file(path)
    if len(set(paths)) < len(paths):
        raise UsageError("--output: two of the runs have the same name; run them one by one")
    return paths


def _files_of(labels: Sequence[str], name: str, target: Path | None) -> list[Path | None]:
    """Return where what a flag writes of each run goes: of several, each has the run's label in its
    name. UsageError.
    """
    if target is None:
        return [None] * len(labels)
    files = [target]
    if len(labels) > 1:
        files = [target.with_stem(f"{target.stem}-{label}") for label in labels]
    if len(set(files)) < len(files):
        raise UsageError(f"--{name}: two of the runs have the same name; run them one by one")
    for file in files:
        check_output(name, file)
    return [*files]
