"""The runs of the screen: at most one at a time, and of each scenario its last one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gpulab.catalog.catalog import Entry
from gpulab.catalog.view import best_comparison
from gpulab.core.findings import Finding
from gpulab.core.jobs import RunRequest
from gpulab.features import needed, present, taken_out
from gpulab.options import Options, UsageError
from gpulab.report.sentences import sentence, with_reason

if TYPE_CHECKING:
    from gpulab.features.predictions.report import Answered, Prediction
    from gpulab.features.sweeps.runs import SweepRuns
    from gpulab.report.report import RunReport
    from gpulab.session.live import LiveSource
    from gpulab.session.run import Run, Source

Following = Callable[["RunReport"], "RunRequest | None"]
"""The run that follows one, by its report."""
Starter = Callable[[Entry, Options], "Source | Finding"]
"""Starts a run and gives its source, or the reason why it cannot run here. UsageError."""


def words_of(source: Source) -> str:
    """Return what there is to say of a source beside its events."""
    return str(getattr(source, "words", ""))


class Runs:
    """`running` is the name of the scenario that runs; `stopping`: it was told to stop."""

    def __init__(self, settings: Options, starter: Starter) -> None:
        self._defaults, self._starter = settings, starter
        self._settings: dict[str, Options] = {}
        self._runs: dict[str, Run] = {}
        self.running: str | None = None
        self.stopping = False
        self._swept: Entry | None = None
        self._then: tuple[Entry, Following] | None = None
        """What follows the run."""
        self._first: Run | None = None
        """The run before, while what follows it runs."""
        self.together: dict[str, RunReport] = {}
        """Of each scenario whose last run had another that followed it, that one's."""
        self.waiting: list[str] = []
        """Scenarios that are to run after this one, in their order."""
        self.predictions: dict[str, Prediction] = {}
        """What somebody expects of a scenario, by its name."""
        self.keeps = True
        """Whether predictions are kept with what came out."""
        self.answered: dict[str, Answered] = {}
        """Predictions beside what came out, of this session."""
        self.reopened: set[str] = set()
        """Scenarios whose run is an earlier one, read from its file."""
        self.sweeps: dict[str, SweepRuns] = {}
        """The last sweep of each scenario, where nothing else of it has run since."""

    def of(self, name: str | None) -> Run | None:
        return self._runs.get(name or "")

    def settings(self, name: str) -> Options:
        return self._settings.get(name, self._defaults)

    def choose(self, name: str, settings: Options) -> None:
        self._settings[name] = settings

    @property
    def any(self) -> bool:
        """Return whether there is one of any scenario."""
        return bool(self._runs)

    @property
    def current(self) -> Run | None:
        return self.of(self.running)

    def start(self, entry: Entry, settings: Options | None = None) -> str | None:
        """Start a run; returns the problem where that cannot be."""
        self.sweeps.pop(entry.name, None)
        return self._start(entry, settings or self.settings(entry.name))

    def follow(self, entry: Entry) -> str | None:
        """Show the run of a run file, from where it was left; returns the problem where that cannot
        be. What was shown before waits.
        """
        run = self.of(entry.name)
        if run is None:
            return self.start(entry)
        self.running = None if run.ended else entry.name
        return None

    def start_sweep(self, entry: Entry, text: str) -> str | None:
        """Start a run for each value of `name=a,b,c`, and then the final; returns the problem where
        that cannot be.
        """
        sweeps = present("sweeps.runs")
        if sweeps is None:
            return taken_out("sweeps")
        try:
            sweep = sweeps.SweepRuns.of_text(entry, text, self.settings(entry.name))
        except UsageError as error:
            return with_reason(str(error), error.reason)
        problem = self._start(entry, sweep.next_point)
        if problem is None:
            self.sweeps[entry.name], self._swept = sweep, entry
        return problem

    def start_request(
        self,
        entry: Entry,
        request_of: Callable[[], RunRequest],
        label: str,
        then: Following | None = None,
    ) -> str | None:
        """Start a run that the lab derives from one of a scenario, and the one that follows from
        its report; returns the problem where that cannot be.
        """
        from gpulab.session.launch import start

        self.sweeps.pop(entry.name, None)
        problem = self._begin(entry, lambda: start(request_of(), self._path(entry, label)))
        if problem is None and then is not None:
            self._then = entry, then
        return problem

    def _start(self, entry: Entry, settings: Options | None) -> str | None:
        return self._begin(entry, lambda: self._starter(entry, settings or self._defaults))

    def _begin(self, entry: Entry, start: Callable[[], Source | Finding]) -> str | None:
        """Take what was started as the entry's run; returns the problem where nothing was."""
        try:
            source = start()
        except UsageError as error:
            return with_reason(str(error), error.reason)
        if isinstance(source, Finding):
            return sentence(source)
        from gpulab.session.run import Run

        self.running, self.stopping = entry.name, False
        self._then = None
        self.together.pop(entry.name, None)
        self.reopened.discard(entry.name)
        self._runs[entry.name] = Run(source)
        return None

    def _path(self, entry: Entry, label: str) -> Path:
        """Return the path of the run file of an entry's run."""
        from gpulab.session.run_files import default_path

        return default_path(label, self.settings(entry.name).share)

    def poll(self) -> str | None:
        """Take in what came; the name of the scenario whose run, or whose sweep, has ended with
        it.
        """
        name, run = self.running, self.current
        if name is None or run is None:
            return None
        run.poll()
        if not run.ended:
            return None
        if name in self.sweeps and self._goes_on(self.sweeps[name], run):
            return None
        if self._goes_together(name, run):
            return None
        self.running = None
        self._keep_prediction(name, self._runs[name])
        return name

    def reopen(self, name: str, run: Run) -> None:
        """Take an earlier run as its last one, unless it runs by now."""
        if name != self.running:
            self._runs[name] = run
            self.reopened.add(name)

    def _goes_on(self, sweep: SweepRuns, run: Run) -> bool:
        """Return whether another run of the sweep has started after this one."""
        sweep.add(run.state.request, run.report)
        if self.stopping or self._swept is None:
            return False
        if (settings := sweep.next_point) is not None:
            return self._start(self._swept, settings) is None
        if (request := sweep.final_request) is None:
            return False
        from gpulab.session.launch import start

        entry, label = self._swept, sweep.final_label
        # where no file can be made, the points stay what they are
        return self._begin(entry, lambda: start(request, self._path(entry, label))) is None

    def _goes_together(self, name: str, run: Run) -> bool:
        """Return whether what follows this run has started. Once it has ended, the run before it is
        the last one again, with what came out of both.
        """
        if self._first is not None:
            self._runs[name], self._first = self._first, None
            self.together[name] = run.report
            return False
        if self._then is None or self.stopping:
            return False
        entry, following = self._then
        request = following(run.report)
        if request is None:
            return False
        if self.start_request(entry, lambda: request, f"{entry.path.stem}-together"):
            return False  # no file can be made: the first stays what it is
        self._first = run
        return True

    def _keep_prediction(self, name: str, run: Run) -> None:
        if (
            self.keeps
            and (prediction := self.predictions.get(name))
            and (best := best_comparison(run.report)) is not None
        ):
            predictions = needed("predictions.report")
            self.answered[name] = predictions.keep(run.report, best, prediction)

    def stop(self) -> bool:
        """Tell what runs to stop, and start nothing after it; whether there is an end to wait
        for.
        """
        self.waiting = []
        if source := self._live():
            self.stopping = True
            source.cancel()
        return source is not None

    def cancel(self) -> None:
        """The same from a handler of a signal, which must not wait for the loop: that may wait for
        the terminal.
        """
        run = self.current
        if (cancel := getattr(run and run.source, "cancel", None)) is not None:
            cancel()

    def end(self) -> None:
        """Stop what runs, and wait until nothing of it is left."""
        if source := self._live():
            source.cancel()
            source.wait()

    def _live(self) -> LiveSource | None:
        """Return the run under way, where it can be stopped."""
        run = self.current
        if run is None:
            return None
        from gpulab.session.live import LiveSource

        return run.source if isinstance(run.source, LiveSource) else None
