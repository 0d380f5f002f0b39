"""The start of a run, for every face: from what a user names to requests, and from a request to a
live source.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path

from msgspec.structs import replace as replace_fields

from gpulab.catalog.catalog import Entry, ScenarioNotFoundError, catalog, find, read_file
from gpulab.catalog.findings import file_unreadable, no_scenario, takes_arguments
from gpulab.catalog.needs import broken_torch, first_missing
from gpulab.catalog.source import is_folder, is_there, real_path
from gpulab.core.findings import Finding
from gpulab.core.jobs import RunRequest, TimedJob
from gpulab.core.limits import FILE_NAME_BYTES, SWEEP_VALUES
from gpulab.core.statuses import Conclusion, ExitCode, conclusion_of
from gpulab.core.text import file_name, plain
from gpulab.features import part, taken_out
from gpulab.options import Options, UsageError
from gpulab.report.build import run_parts
from gpulab.report.report import RunReport
from gpulab.session.requests import request_for, values_to_sweep
from gpulab.session.run_files import default_path, new_run_file
from gpulab.session.session import Session

ALL = "all"


@dataclass(frozen=True)
class Launch:
    """One run to make. `named` ones must run; those of a folder or of `all` are skipped where needs
    are not met.
    """

    entry: Entry
    functions: tuple[str, ...] = ()
    named: bool = True
    points: tuple[tuple[str, str], ...] = ()
    """The parameters that are swept, and their values in this run."""

    @property
    def label(self) -> str:
        """Return the label of the run. What distinguishes its run from the others of one command;
        fit for a file name on every system.

        From the file and its functions: the entry's name also depends on what else a face lists.
        """
        name = file_name("-".join((self.entry.path.stem, *self.functions)), FILE_NAME_BYTES // 2)
        return file_name("-".join((name, *chain(*self.points))))


def launches_of(name: str) -> list[Launch]:
    """Return the launches of a scenario's name, FILE, FILE:function[,function], a folder, `all`,
    `topic:WORDS`, or `stage:NUMBER` of the course.

    ScenarioNotFoundError where there is nothing of that name.
    """
    if name == ALL:
        return [Launch(entry, named=False) for entry in catalog()]
    kind, _, asked = name.partition(":")
    if kind == "topic":
        return _of_topic(asked)
    if kind == "stage":
        return _of_stage(asked)
    file, colon, functions = name.rpartition(":")
    if colon and file.endswith(".py"):
        path = Path(file)
        if not is_there(path):
            raise ScenarioNotFoundError(f"there is no file {file}")
        return [
            Launch(read_file(path), tuple(function.strip() for function in functions.split(",")))
        ]
    if name and is_folder(Path(name)):
        folder = real_path(Path(name))
        return [
            Launch(entry, named=False) for entry in catalog([folder]) if entry.path.parent == folder
        ]
    try:
        return [Launch(find(name))]
    except ScenarioNotFoundError:
        matching = _matching(name)
        if not matching:
            raise
        return matching


def _of_topic(asked: str) -> list[Launch]:
    """Return the launches of the topics that have all these words. ScenarioNotFoundError."""
    words = set(re.findall(r"\w+", asked.lower()))
    entries = [entry for entry in catalog() if entry.row.topic]
    of = [entry for entry in entries if words <= set(re.findall(r"\w+", entry.row.topic.lower()))]
    if not words or not of:
        known = ", ".join(dict.fromkeys(entry.row.topic for entry in entries))
        raise ScenarioNotFoundError(f"there is no topic {asked!r}: {known}")
    return [Launch(entry, named=False) for entry in of]


def _of_stage(asked: str) -> list[Launch]:
    """Return the launches of the lessons of a stage, in its order. ScenarioNotFoundError."""
    stages = part("course.report:stages_of_lessons") or []
    if not asked.isdecimal() or not 1 <= int(asked) <= len(stages):
        known = "; ".join(f"stage:{at} {title}" for at, (title, _) in enumerate(stages, 1))
        raise ScenarioNotFoundError(f"there is no stage {asked!r}: {known or taken_out('course')}")
    return [Launch(find(lesson), named=False) for lesson in stages[int(asked) - 1][1]]


def _matching(pattern: str) -> list[Launch]:
    """Return launches of the scenarios whose whole name matches."""
    try:
        expression = re.compile(pattern)
    except re.error:
        return []
    return [Launch(entry) for entry in catalog() if expression.fullmatch(entry.name)]


def single_launch(name: str) -> Launch:
    """The one run that a name stands for. UsageError where it is several."""
    launches = launches_of(name)
    if len(launches) != 1:
        raise UsageError(f"{name} stands for {len(launches)} scenarios: name one")
    return launches[0]


def sweep_launches(launch: Launch, sweeps: Sequence[str], options: Options) -> list[Launch]:
    """The launch at every value of `name=a,b,c`, of several at every point of the grid; UsageError
    where there is nothing to sweep.
    """
    if launch.entry.error or not sweeps:
        return [launch]
    if launch.functions:
        raise UsageError("--sweep requires a scenario: a plain function has no parameters")
    axes = dict(values_to_sweep(launch.entry, sweep) for sweep in sweeps)
    if len(axes) < len(sweeps):
        raise UsageError("--sweep gives two lists of values for the same name")
    for name in axes:
        if name in options.chosen:
            raise UsageError(f"--set {name}=... and --sweep {name}: one or the other")
    points = list(product(*axes.values()))
    if len(points) > SWEEP_VALUES:
        raise UsageError(f"--sweep: {len(points)} points, and a grid has at most {SWEEP_VALUES}")
    return [replace(launch, points=tuple(zip(axes, point, strict=True))) for point in points]


def plan(launch: Launch, settings: Options, *, several: bool = False) -> RunRequest | RunReport:
    """The request of a launch, or the report of one that cannot run here. UsageError.

    Of `several` scenarios each takes those of the chosen parameters that it has.
    """
    reason = why_not(launch, settings.device, with_arguments=settings.arguments is not None)
    if reason is not None:
        skipped = not launch.named and launch.entry.error is None and broken_torch() is None
        return _not_run(launch, ExitCode.MEASURED if skipped else ExitCode.FAILED, reason)
    scenario, chosen = launch.entry.scenario, settings.chosen
    if several:
        parameters = scenario.params if scenario and not launch.functions else {}
        chosen = {name: value for name, value in chosen.items() if name in parameters}
    chosen = {**chosen, **dict(launch.points)}
    return request_for(launch.entry, replace(settings, chosen=chosen), launch.functions)


def why_not(launch: Launch, device: str | None, *, with_arguments: bool = False) -> Finding | None:
    """Return the reason why a launch cannot run: an unreadable file, an unmet need, arguments that
    nobody gives.
    """
    entry = launch.entry
    if entry.error:
        error = entry.error
        message = plain(error.message)
        return file_unreadable(
            file=entry.path.name, line=error.line, message=message, fix=plain(error.fix)
        )
    if launch.functions:
        for name in launch.functions:
            function = entry.text.callables.get(name)
            if function and function.required and not with_arguments:
                return takes_arguments(name, arguments=list(function.required))
        return first_missing(())
    if entry.scenario is None:
        return no_scenario(file=entry.path.name)
    baseline = next(iter(entry.scenario.variants.values()))
    return first_missing((*entry.scenario.needs, *baseline.needs), device)


def start(request: RunRequest, path: Path) -> Session:
    """Start a run that writes its events to a new file. UsageError where there can be none."""
    profile = request.profile
    if profile is not None and profile.memory is not None:  # snapshots stand beside the run file
        request = replace_fields(
            request, profile=replace_fields(profile, memory=str(path.with_suffix("")))
        )
    counters = request.job.counters if isinstance(request.job, TimedJob) else None
    if counters is not None:
        counters = replace_fields(counters, report=str(path.absolute().with_suffix("")))
        request = replace_fields(request, job=replace_fields(request.job, counters=counters))
    try:
        file = new_run_file(path)
    except OSError as error:
        message = (
            f"no run file can be made at {path}: {error.strerror}; choose another path: "
            "--output FILE, or XDG_STATE_HOME=FOLDER for all runs"
        )
        raise UsageError(message) from None
    session = Session(request, file)
    session.start()
    return session


def start_entry(entry: Entry, settings: Options) -> Session | Finding:
    """Start an entry as lists show it, with those of the chosen parameters that it has, or say why
    it cannot run.
    """
    launch = Launch(entry, (entry.function,) if entry.function else ())
    request = plan(launch, settings, several=True)
    if isinstance(request, RunRequest):
        return start(request, default_path(launch.label, settings.share))
    assert request.reason is not None
    return request.reason


def _not_run(launch: Launch, code: ExitCode, reason: Finding) -> RunReport:
    entry = launch.entry
    return RunReport(
        scenario=launch.entry.name,
        parts=run_parts(),
        title=entry.title,
        source_sha256=entry.sha256,
        params=dict(launch.points),
        outcome=Conclusion.SKIPPED if code == ExitCode.MEASURED else conclusion_of(code),
        exit_code=code,
        reason=reason,
        explanations=[entry.hides] if entry.hides else [],
    )
