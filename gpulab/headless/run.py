"""`--run`: one scenario, several, all of them, or plain functions; a table, JSON, and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gpulab.headless.progress import progress_of
from gpulab.headless.runner import measure
from gpulab.headless.terminal import Terminal, terminal
from gpulab.model.result import FAILED, INTERRUPTED, MEASURED, OUTCOMES, RunResult, combine, run_result
from gpulab.run import catalog
from gpulab.run.catalog import Entry, ScenarioNotFoundError
from gpulab.run.record import default_path
from gpulab.run.request import UsageError, request_for
from gpulab.views.results import result

_SMOKE_TIME_S, _TIME_S = 0.5, 10.0
_TIMEOUT_S, _TIMEOUT_OF_TIME = 600.0, 20


@dataclass(frozen=True)
class Options:
    """What refines `--run`. Seconds; `json` is a file, or - for stdout."""

    device: str | None = None
    chosen: dict[str, str] = field(default_factory=dict)
    threads: int = 1
    time_s: float | None = None
    seed: int = 0
    smoke: bool = False
    timeout_s: float | None = None
    output: Path | None = None
    json: str | None = None
    fail_below: float | None = None
    ascii: bool = False


@dataclass(frozen=True)
class Job:
    """One run to make; `named` ones must run, those of `all` are skipped where their needs are not met."""

    entry: Entry
    functions: tuple[str, ...] = ()
    named: bool = True


def run(names: Sequence[str], options: Options) -> int:
    """Run them one after the other and print what came out; returns the exit code."""
    shown = terminal(ascii_only=options.ascii)
    jobs = [job for name in names for job in _jobs(name)]
    if not jobs:
        raise UsageError("there is nothing to run: no scenario was found")
    if options.output and len(jobs) == 1 and options.output.exists():
        raise UsageError(f"--output {options.output} exists: runs are never overwritten, choose another name")
    results: list[RunResult] = []
    environment: dict[str, str | None] = {}
    for job in jobs:
        found, versions = _run_one(job, options, shown, several=len(jobs) > 1)
        environment = versions or environment
        results.append(found)
        console = shown.err if options.json == "-" else shown.out
        console.print(result(found, shown.glyphs), soft_wrap=not console.is_terminal)
        # In one piece, so that it can be copied.
        console.print(*([f"run file: {found.run_file}"] if found.run_file else []), "", sep="\n", soft_wrap=True)
        if found.exit_code == INTERRUPTED:
            break
    whole = combine(results, environment)
    if options.json:
        _write_json(msgspec.json.format(msgspec.json.encode(whole)), options.json)
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


def _run_one(
    job: Job, options: Options, shown: Terminal, *, several: bool
) -> tuple[RunResult, dict[str, str | None] | None]:
    entry = job.entry
    if entry.error:
        return _not_run(entry, FAILED, f"{entry.path.name}, {entry.error}"), None
    time_s = options.time_s or (_SMOKE_TIME_S if options.smoke else _TIME_S)
    needs = entry.scenario.needs if entry.scenario and not job.functions else ()
    missing = entry.missing if needs else None
    if not missing and "cuda" in needs and options.device == "cpu":
        missing = "needs cuda: this run is on the CPU"
    if missing:
        return _not_run(entry, FAILED if job.named else MEASURED, missing), None
    request = request_for(
        entry,
        device=options.device,
        chosen=options.chosen,
        functions=job.functions,
        threads=options.threads,
        time_s=time_s,
        seed=options.seed,
        smoke=options.smoke,
        timeout_s=options.timeout_s or max(_TIMEOUT_S, _TIMEOUT_OF_TIME * time_s),
    )
    path = options.output or default_path(entry.name)
    if options.output and several:
        path = options.output / f"{entry.name}.jsonl"
    try:
        with progress_of(shown) as show:
            state = measure(request, path, show)
    except OSError as error:
        raise UsageError(
            f"the run file {path} cannot be made: {error.strerror}; choose another with --output"
        ) from None
    return run_result(state, str(path), options.fail_below), state.environment


def _not_run(entry: Entry, code: int, why: str) -> RunResult:
    return RunResult(
        scenario=entry.name,
        title=entry.title,
        source_sha256=entry.sha256,
        outcome="skipped" if code == MEASURED else OUTCOMES[code],
        exit_code=code,
        reason=why,
    )


def _write_json(data: bytes, target: str) -> None:
    if target == "-":
        sys.stdout.buffer.write(data + b"\n")
        sys.stdout.flush()
        return
    try:
        Path(target).write_bytes(data + b"\n")
    except OSError as error:
        raise UsageError(f"--json {target}: {error.strerror}") from None
