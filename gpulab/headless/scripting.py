"""Runs and reports for scripts and notebooks: the same that the command line gives."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from inspect import Parameter, signature
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from gpulab.core.run_file import RunFileError
from gpulab.headless.arguments import name_of, options_of, path_of, run_file_of
from gpulab.modes import function_of
from gpulab.options import KEYWORDS, Options, UsageError
from gpulab.proc.orphans import in_worker
from gpulab.report.report import Display, RunReport, display_with
from gpulab.report.sentences import with_reason
from gpulab.scenario import Param
from gpulab.session.drive import Interrupts, drive_to_end
from gpulab.session.launch import plan, single_launch, start
from gpulab.session.run import Run, whole_run
from gpulab.session.run_files import default_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gpulab.features.compare.report import ComparisonReport
    from gpulab.features.history.trend import ScenarioHistory


def _display() -> Display:
    from gpulab.show import display

    return display


display_with(_display)


def run(
    scenario: str | PathLike[str] | Callable[..., object],
    *,
    params: Mapping[str, Param] | None = None,
    output: str | PathLike[str] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> RunReport:
    """Measure a scenario by its name or file, or functions as FILE:function, and return its report
    once it has ended.

    `scenario` may also be a function that is defined at the top of a file: what runs is the file as
    it is now; `arguments`, a function too, makes what it is called with. Options are the flags of
    `gpulab --run` for one run, as the signature names them; `output` is the run file, by default a
    new one under the user's state directory: folders that are missing are made. `progress`: whether
    to show how far it is, on a terminal or below a notebook's cell; None: only there. A failure is
    a report too: its
    `exit_code` is that of the command line. Raises `UsageError` where the arguments make no sense,
    and `ScenarioNotFoundError`. An interrupt, as any exception, stops the run; its file keeps what
    was measured.
    """
    if in_worker():
        raise UsageError(
            "gpulab.run was called by a file that gpulab itself is running: put the call below "
            "if __name__ == '__main__':"
        )
    launch = single_launch(name_of(scenario, with_arguments="arguments" in options))
    checked = options_of(launch, params, options)
    path = run_file_of(output, checked.trace)
    try:
        request = plan(launch, checked)
    except UsageError as error:
        raise UsageError(with_reason(str(error), error.reason), error.reason) from None
    if isinstance(request, RunReport):
        return request
    # Ctrl+C again, while the run is being stopped, must not leave its worker behind.
    with Interrupts((signal.SIGINT,), patience_s=None) as interrupts, _shown(progress) as watchers:
        source = start(request, path or default_path(launch.label))
        interrupts.stop_with(source.cancel)
        return drive_to_end(source, watchers).report


_keywords = [
    Parameter(name, Parameter.KEYWORD_ONLY, default=getattr(Options(), name)) for name in KEYWORDS
]
_signature = signature(run)
_fixed = [each for each in _signature.parameters.values() if each.kind != Parameter.VAR_KEYWORD]
run.__signature__ = _signature.replace(parameters=[*_fixed, *_keywords])  # type: ignore[attr-defined]


def load(path: str | PathLike[str]) -> RunReport:
    """The report of a run file: of a run that has ended, or as far as it came. RunFileError where
    there is none, or it cannot be read; UsageError of what is no path.
    """
    file = path_of("path", path)
    try:
        return whole_run(file).report
    except OSError as error:
        raise RunFileError(f"{file}: {error.strerror}") from None


def compare(before: str | PathLike[str], after: str | PathLike[str]) -> ComparisonReport:
    """Return what `gpulab --compare` says of two saved runs, or folders of them, by name or path.
    UsageError where a side is none.
    """
    compare_saved = function_of("gpulab.compare", "gpulab.headless.compare:compare_saved")
    report: ComparisonReport = compare_saved(fspath(before), fspath(after))
    return report


def history(scenario: str) -> list[ScenarioHistory]:
    """Its runs on this machine, and where its speedups changed, as `gpulab --history` says; of each
    file of that name. UsageError where it has not run here.
    """
    history_of = function_of("gpulab.history", "gpulab.headless.history:history_of")
    found: list[ScenarioHistory] = history_of(scenario)
    return found


def plot(reports: Sequence[RunReport], path: str | PathLike[str] | None = None) -> Figure:
    """A figure of several runs of one scenario that differ in one parameter: the curve of the times
    of each variant over it.

    `path`, which ends in .png, .svg or .pdf: it is written there as well. Of one run it is that of
    `RunReport.plot`. ValueError where the runs make no curve or the path has another ending,
    ModuleNotFoundError without matplotlib.
    """
    if not isinstance(reports, Sequence) or not all(isinstance(one, RunReport) for one in reports):
        raise UsageError("reports: write a list of reports")
    return _display().figure(reports, None if path is None else path_of("path", path))


@contextmanager
def _shown(progress: bool | None) -> Iterator[Sequence[Callable[[Run], None]]]:
    """Yield what shows how far a run is, where it is to be shown."""
    show = _notebook()
    if progress is None:
        progress = show is not None or (sys.stderr is not None and sys.stderr.isatty())
    if not progress:
        yield []
        return
    from gpulab.headless.drive import PlainProgress, progress_of
    from gpulab.headless.output import open_terminal

    if show is None:
        with progress_of(open_terminal(ascii_only=False)) as on_terminal:
            yield [on_terminal]
        return
    line = _NotebookLine(show)
    yield [PlainProgress(line.show).show, line.end]


class _NotebookLine:
    """One line below a notebook's cell, which the next replaces; at the end it says what came
    out.
    """

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, text: str) -> None:
        content = {"text/plain": text}
        if self._handle is None:
            self._handle = self._display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)

    def end(self, run: Run) -> None:
        if run.ended:
            self.show(repr(run.report))


def _notebook() -> Callable[..., Any] | None:
    """The function that displays something below a cell; None where this is no notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if getattr(shell, "kernel", None) is None:  # also of IPython on a terminal
        return None
    display: Callable[..., Any] = import_module("IPython.display").display
    return display
