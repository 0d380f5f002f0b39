"""`--history`: the runs of this machine, and which may go."""

from __future__ import annotations

import re
import stat
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from glob import escape
from itertools import chain
from pathlib import Path

from gpulab.core.files import is_held, open_regular
from gpulab.core.readable import readable
from gpulab.core.statuses import ExitCode
from gpulab.core.units import byte_count, plural
from gpulab.features.history.trend import HistoryReport, ScenarioHistory, histories
from gpulab.features.history.view import overview, scenario_view
from gpulab.headless.output import Terminal, open_terminal, write_json
from gpulab.headless.standard_streams import OutputError
from gpulab.options import Options, UsageError
from gpulab.report.past import PastRun
from gpulab.report.sentences import sentence
from gpulab.session.run_files import at_home, run_file_names, runs_folder
from gpulab.session.store import Store


def prune(runs: Sequence[PastRun], keep: int) -> tuple[int, int]:
    """Delete the files of these runs beyond the newest `keep` of each scenario, and their memory
    snapshots and counters; returns how many files that were, and their bytes. OSError.
    """
    folder = runs_folder()
    seen: Counter[tuple[str, str]] = Counter()
    sizes = []
    for run in sorted(runs, key=lambda run: run.at, reverse=True):
        scenario = run.path, run.scenario
        seen[scenario] += 1
        path = Path(run.run_file)
        if seen[scenario] <= keep or path.parent != folder or not _is_ours_alone(path):
            continue
        beside = (folder.glob(f"{escape(path.stem)}{end}") for end in ("-*.pickle", ".ncu-rep"))
        for file in (path, *chain.from_iterable(beside)):
            sizes.append(file.lstat().st_size)
            file.unlink()
    return len(sizes), sum(sizes)


def _is_ours_alone(path: Path) -> bool:
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            return False
        with open_regular(path) as file:
            return not is_held(file.fileno())
    except OSError:
        return False


_MOST_NAMED = 8


def history(name: str, options: Options) -> int:
    """Print the scenarios that have run here, or the runs of one; or delete run files.

    UsageError where no run has that name, or a flag needs another.
    """
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    keep = _runs_to_keep(options)
    runs = _read(terminal)
    if name:
        runs = _matching(name, runs)
    if options.prune:
        return _prune(runs, keep, terminal)
    report = HistoryReport(
        folder=str(runs_folder()),
        runs=len(runs),
        unfinished=0 if name else _unfinished(runs),
        scenarios=tuple(histories(runs, with_entries=bool(name))),
    )
    if options.json:
        write_json(report, options.json)
    if options.json_on_stdout:
        return ExitCode.MEASURED
    report = readable(report)  # a store may hold anything
    now = datetime.now(UTC)
    width = terminal.results.width
    if not name:
        terminal.show(overview(report, now, folder=at_home(runs_folder())))
        return ExitCode.MEASURED
    for number, scenario in enumerate(report.scenarios):
        if number:
            terminal.say("")
        terminal.show(scenario_view(scenario, now, width, verbose=options.verbose))
    return ExitCode.MEASURED


def _read(terminal: Terminal) -> list[PastRun]:
    """All runs, after those files that the store lacks have been read."""
    runs: list[PastRun] = []
    with Store() as store:
        unread = store.unread()
        # which take seconds to read
        if len(unread) > 200:
            terminal.note(f"reading {len(unread):,} run files that the store lacks")
        runs = store.runs()
    if problem := store.problem():
        terminal.note(sentence(problem), "yellow")
    return runs


def history_of(name: str) -> list[ScenarioHistory]:
    """Return the history of a scenario that ran here, or of a file. UsageError without one."""
    with Store() as store:
        return histories(_matching(name, store.runs()), with_entries=True)
    return []


def _matching(name: str, runs: Sequence[PastRun]) -> list[PastRun]:
    """Those of a scenario by its name, or of a file."""
    path = str(Path(name).absolute())
    matching = [run for run in runs if run.scenario == name or run.path in (name, path)]
    if not matching:
        scenarios = sorted({run.scenario for run in runs})
        hint = ""
        if scenarios:
            more = ", ..." if len(scenarios) > _MOST_NAMED else ""
            hint = f": {', '.join(scenarios[:_MOST_NAMED])}{more} did"
        raise UsageError(f"--history {name}: it has not run here{hint}")
    return matching


def _unfinished(runs: Sequence[PastRun]) -> int:
    ended = {run.run_file.rpartition("/")[2] for run in runs}
    return sum(name not in ended for name in run_file_names())


def _runs_to_keep(options: Options) -> int:
    if options.keep is None:
        return 100
    text = str(options.keep)
    if not re.fullmatch("[1-9][0-9]{0,8}", text):
        raise UsageError(f"--keep {text}: write how many runs of each scenario stay, 1 or more")
    return int(text)


def _prune(runs: Sequence[PastRun], keep: int, terminal: Terminal) -> int:
    try:
        files, size = prune(runs, keep)
    except OSError as error:
        raise OutputError(f"{error.filename} could not be deleted: {error.strerror}") from None
    terminal.say(
        f"deleted {plural(files, 'file')}, {byte_count(size)} ({size:,} bytes), of "
        f"{at_home(runs_folder())}: the newest {keep:,} runs of each scenario stay"
    )
    return ExitCode.MEASURED
