"""`--run`: one scenario, several, all of them, or plain functions; a table, JSON, and an exit code."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace as structs_replace

import gpulab
from gpulab.headless.output import check_json, write_json
from gpulab.headless.plot import check_plot, plot
from gpulab.headless.progress import progress_of
from gpulab.headless.runner import measure, run_file
from gpulab.headless.show import show
from gpulab.headless.terminal import terminal
from gpulab.model.conclude import combine, run_result, swept
from gpulab.model.request import RunRequest
from gpulab.model.result import FAILED, INTERRUPTED, MEASURED, OUTCOMES, RunResult, Sweep
from gpulab.run import catalog
from gpulab.run.catalog import Entry, ScenarioNotFoundError
from gpulab.run.needs import first_missing
from gpulab.run.record import default_path
from gpulab.run.request import Settings, UsageError, request_for, sweep_of
from gpulab.views.results import failures
from gpulab.views.summary import line, summary
from gpulab.views.sweep import sweep

if TYPE_CHECKING:
    from rich.text import Text


@dataclass(frozen=True)
class Options(Settings):
    """What refines `--run`. `json` is a file, or - for stdout."""

    output: Path | None = None
    json: str | None = None
    fail_below: float | None = None
    ascii: bool = False
    plot: Path | None = None
    sweep: str | None = None
    """name=a,b,c; or a name, or nothing, for the scenario's own values."""


@dataclass(frozen=True)
class Job:
    """One run to make. `named` ones must run; those of a folder or of `all` are skipped where needs are not met."""

    entry: Entry
    functions: tuple[str, ...] = ()
    named: bool = True
    point: tuple[str, str] | None = None
    """The parameter that is swept, and its value in this run."""

    @property
    def label(self) -> str:
        """What tells its run from the others of one command."""
        return f"{self.entry.name}-{self.point[0]}-{_slug(self.point[1])}" if self.point else self.entry.name


def _slug(text: str) -> str:
    """A value as a part of a file's name."""
    return re.sub(r"[^\w.+-]", "_", text)


def run(names: Sequence[str], options: Options) -> int:
    """Run them one after the other and print what came out; returns the exit code."""
    shown = terminal(ascii_only=options.ascii)
    jobs = [job for name in names for named in _jobs(name) for job in _points(named, options)]
    # Every mistake of the command line is found before the first measurement.
    planned = _plan(jobs, options)
    paths = _paths(jobs, options)
    if options.json and options.json != "-":
        check_json(Path(options.json), paths)
    if options.trace and options.trace.resolve() in {one.resolve() for one in (*paths, Path(options.json or "-"))}:
        raise UsageError(f"--trace {options.trace}: that is where the run file or --json goes")
    pictures = _pictures(jobs, options)
    results: list[RunResult] = []
    # Of a whole library only what came out: everything else is in the run files.
    library = len(jobs) > 1 and not any(job.named for job in jobs) and options.sweep is None
    done: list[Text] = []
    environment: dict[str, str | None] = {"gpulab": gpulab.__version__, "torch": None, "driver": None}
    environment["python"] = platform.python_version()
    for job, plan, path, picture in zip(jobs, planned, paths, pictures, strict=True):
        if len(jobs) > 1 and not (library and shown.err.is_terminal):
            shown.err.print(f"{job.label} ({len(results) + 1} of {len(jobs)})", style="bold")
        if isinstance(plan, RunResult):
            found = plan
            state = None
        else:
            if plan.memory is not None:
                plan = structs_replace(plan, memory=str(path.with_suffix("")))
            if plan.trace is not None and len(jobs) > 1:
                trace = Path(plan.trace)
                plan = structs_replace(plan, trace=str(trace.with_stem(f"{trace.stem}-{job.label}")))
            file = run_file(path)
            with progress_of(shown, done) as progress:
                state = measure(plan, file, progress)
            environment = state.environment or environment
            found = run_result(state, str(path), options.fail_below)
        if state:
            shown.err.print(failures(state, shown.glyphs), end="", soft_wrap=True)
        if library:
            done.append(line(found, shown.glyphs, len(done) + 1, len(jobs)))
            if not shown.err.is_terminal or len(done) == len(jobs) or found.exit_code == INTERRUPTED:
                shown.err.print(*(done if shown.err.is_terminal else done[-1:]), sep="\n", soft_wrap=True)
        elif job.point is None:
            show(found, shown, json_on_stdout=options.json == "-")
        if picture and state:
            plot(found, picture)
            shown.err.print(f"picture: {picture}", soft_wrap=True)
        results.append(found)
        if found.exit_code == INTERRUPTED:
            break
    groups = _sweeps(jobs, results)
    whole = combine(results, environment, [found for found, _ in groups])
    console = shown.err if options.json == "-" else shown.out
    if options.sweep is not None:
        for found_sweep, runs in groups:
            console.print(sweep(found_sweep, runs, shown.glyphs, console.width), "", sep="\n")
            console.print(*(f"run file: {one.run_file}" for one in runs if one.run_file), sep="\n", soft_wrap=True)
    elif len(results) > 1:
        console.print(summary(results, shown.glyphs))
        if library:
            console.print(f"run files: {paths[0].parent}", soft_wrap=True)
    if options.json:
        write_json(whole, options.json)
    return whole.exit_code


def _jobs(name: str) -> list[Job]:
    if name == "all":
        return [Job(entry, named=False) for entry in catalog.catalog()]
    file, colon, functions = name.rpartition(":")
    if colon and file.endswith(".py"):
        path = Path(file)
        if not path.is_file():
            raise ScenarioNotFoundError(f"there is no file {file}")
        return [Job(catalog.read_file(path), tuple(one.strip() for one in functions.split(",")))]
    if Path(name).is_dir():
        folder = Path(name).resolve()
        return [Job(entry, named=False) for entry in catalog.catalog([folder]) if entry.path.parent == folder]
    return [Job(catalog.find(name))]


def _points(job: Job, options: Options) -> list[Job]:
    """The job at every value that is swept; the job itself where nothing is."""
    if options.sweep is None or job.entry.error:
        return [job]
    if job.functions:
        raise UsageError("--sweep goes with a scenario: a plain function has no parameters")
    name, values = sweep_of(job.entry, options.sweep)
    if name in options.chosen:
        raise UsageError(f"--set {name}=... and --sweep {name}: one or the other")
    return [replace(job, point=(name, value)) for value in values]


def _sweeps(jobs: Sequence[Job], results: Sequence[RunResult]) -> list[tuple[Sweep, list[RunResult]]]:
    """The runs of every scenario that is swept; of those that were made, should they have been interrupted."""
    groups: dict[tuple[Path, str], list[RunResult]] = {}
    for job, found in zip(jobs, results, strict=False):
        if job.point:
            groups.setdefault((job.entry.path, job.point[0]), []).append(found)
    return [(swept(parameter, runs), runs) for (_, parameter), runs in groups.items()]


def one_entry(name: str) -> Entry:
    """The one scenario that goes by the name. UsageError where it is several, or cannot be read."""
    jobs = _jobs(name)
    if len(jobs) != 1 or jobs[0].functions:
        raise UsageError(f"{name}: name one scenario")
    if jobs[0].entry.error:
        raise UsageError(f"{jobs[0].entry.path.name}, {jobs[0].entry.error}")
    return jobs[0].entry


def _plan(jobs: Sequence[Job], options: Options) -> list[RunRequest | RunResult]:
    """A request for each job, or the result of one that cannot run. UsageError."""
    if not jobs:
        raise UsageError("there is nothing to run: no scenario was found")
    if options.fail_below and any(job.functions for job in jobs):
        raise UsageError("--fail-below: plain functions are not compared; put them into a scenario (--new FILE)")
    known = {name for job in jobs if job.entry.scenario for name in job.entry.scenario.params}
    for name in options.chosen:
        if len(jobs) > 1 and name not in known:
            raise UsageError(f"--set {name}=...: none of the scenarios has such a parameter")
    return [_plan_one(job, options, several=len({job.entry.path for job in jobs}) > 1) for job in jobs]


def _plan_one(job: Job, options: Options, *, several: bool) -> RunRequest | RunResult:
    entry = job.entry
    if entry.error:
        return _not_run(entry, FAILED, f"{entry.path.name}, {entry.error}")
    if entry.scenario and not job.functions:
        baseline = next(iter(entry.scenario.variants.values()))
        if why := first_missing((*entry.scenario.needs, *baseline.needs), options.device):
            return _not_run(entry, FAILED if job.named else MEASURED, why, job.point)
        if several:
            chosen = {name: value for name, value in options.chosen.items() if name in entry.scenario.params}
            options = replace(options, chosen=chosen)
        if job.point:
            options = replace(options, chosen={**options.chosen, job.point[0]: job.point[1]})
    return request_for(entry, options, job.functions)


def _paths(jobs: Sequence[Job], options: Options) -> list[Path]:
    """Where each run file goes. UsageError where one is there already, or two would be one."""
    names = [job.label for job in jobs]
    if options.output is None:
        return [default_path(f"{name}-{number}" if number else name) for number, name in enumerate(names)]
    paths = [options.output / f"{name}.jsonl" for name in names] if len(names) > 1 else [options.output]
    for path in paths:
        if path.exists():
            raise UsageError(f"--output {path} exists: runs are never overwritten, choose another name")
    if len(set(paths)) < len(paths):
        raise UsageError("--output: two of the runs have the same name; run them one by one")
    return paths


def _pictures(jobs: Sequence[Job], options: Options) -> list[Path | None]:
    """Where each run's picture goes: of several, each has the run's name in its own. UsageError."""
    asked = options.plot
    if asked is None:
        return [None] * len(jobs)
    if options.json and Path(options.json) == asked:
        raise UsageError(f"--plot {asked}: that is where --json goes")
    found = [asked.with_stem(f"{asked.stem}-{job.label}") if len(jobs) > 1 else asked for job in jobs]
    if len(set(found)) < len(found):
        raise UsageError("--plot: two of the runs have the same name; run them one by one")
    for path in found:
        check_plot(path)
    return list(found)


def _not_run(entry: Entry, code: int, why: str, point: tuple[str, str] | None = None) -> RunResult:
    return RunResult(
        params=dict([point]) if point else {},
        scenario=entry.name,
        title=entry.title,
        source_sha256=entry.sha256,
        outcome="skipped" if code == MEASURED else OUTCOMES[code],
        exit_code=code,
        reason=why,
    )
