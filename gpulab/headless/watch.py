"""`--watch` without the screen: follow a run of another process to its end, and print what it
gave.
"""

from __future__ import annotations

from pathlib import Path
from time import sleep

from gpulab.catalog.source import is_folder
from gpulab.core.run_file import RunFileError
from gpulab.headless.drive import progress_of
from gpulab.headless.output import Terminal, open_terminal
from gpulab.headless.replay import check_flags, show_run
from gpulab.options import Options, UsageError
from gpulab.session.active_runs import RunsFolder, place_of, source_of
from gpulab.session.run import Run
from gpulab.session.run_files import at_home
from gpulab.session.tail import Following, TailSource

_POLL_S = 0.5


def watch(name: str, options: Options) -> int:
    """Follow the run, or the next one of a folder; returns the exit code of the run."""
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    place = place_of(name)
    if is_folder(place) or not name:
        place = _next_run(place, terminal)
    try:
        run = Run(source_of(place))
    except (RunFileError, OSError) as error:
        raise UsageError(f"{place}: {error}") from None
    run.poll()
    check_flags(run, options)
    _follow(run, terminal)
    return show_run(run, options, terminal)


def _next_run(folder: Path, terminal: Terminal) -> Path:
    """The newest run that goes on there, once there is one."""
    runs = RunsFolder(folder)
    waits = False
    while True:
        for run in runs.scan():
            if run.goes_on:
                terminal.note(f"watching {run.scenario}: {at_home(run.path)}", "dim")
                return run.path
        if not waits:
            terminal.note(f"no run is going on in {at_home(folder)}: waiting for one", "dim")
            waits = True
        sleep(_POLL_S)


def _follow(run: Run, terminal: Terminal) -> None:
    """To its end, or that of its file, with its progress on stderr."""
    said = Following.UNDER_WAY
    with progress_of(terminal) as progress:
        run.poll()
        while not run.ended:
            progress(run)
            said = _say(run, terminal, said)
            sleep(_POLL_S)
            run.poll()
    _say(run, terminal, said)


def _say(run: Run, terminal: Terminal, before: Following) -> Following:
    """Say how the file stands, where that has changed; returns what it is."""
    if not isinstance(run.source, TailSource):
        return before
    standing = run.source.standing
    if standing not in (before, Following.UNDER_WAY):
        terminal.note(run.source.words, "yellow")
    return standing
