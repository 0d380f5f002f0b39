"""What earlier runs left of a scenario: the last result, a newer run that was stopped or a smoke
run, and what the user had predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import ValidationError

from gpulab.catalog.catalog import Entry
from gpulab.catalog.view import ago, last_run
from gpulab.core.run_file import RunFileError
from gpulab.features import present
from gpulab.report.past import PastRun, past_run
from gpulab.session.run import Run, whole_run
from gpulab.session.run_files import at_home
from gpulab.session.store import Store

if TYPE_CHECKING:
    from gpulab.features.predictions.report import Answered


@dataclass(frozen=True)
class PreviousRuns:
    """`shown` is the newest, or where that was stopped or a smoke run an earlier one that counts
    for more.
    """

    shown: PastRun
    newest: PastRun
    predicted: Answered | None = None

    @property
    def has_newer(self) -> bool:
        """Return whether a newer one was stopped or a smoke run."""
        return self.newest.run_file != self.shown.run_file

    @property
    def age(self) -> str:
        """Return the age of the shown run, in six characters."""
        return ago(self.shown, datetime.now(UTC))

    @property
    def age_in_words(self) -> str:
        """Return the age of the shown run in words."""
        return _age_words(self.shown)

    def after(self, entry: Entry, *, read_only: bool = False) -> str:
        """The line above what an earlier run came to: how old it is, and what has been since."""
        parts = [self.age_in_words + ("" if read_only else ": r runs it anew")]
        if self.has_newer:
            what = "a smoke run" if self.newest.smoke else "stopped"
            parts.append(f"the newest run was {what} ({_age_words(self.newest)}; h lists it)")
        if self.shown.source_sha256 != entry.sha256:
            parts.append("the source has changed since")
        return " · ".join(parts)

    def facts(self, entry: Entry) -> Mapping[str, str]:
        """The lines of the lesson's page about them."""
        facts = {"last run": f"{last_run(self.shown)}, {_age_words(self.shown)}"}
        if self.has_newer:
            what = "smoke run" if self.newest.smoke else "stopped"
            facts[what] = f"the newest run, {_age_words(self.newest)}"
        predictions = present("predictions.view")
        if predictions and self.predicted is not None:
            facts["you predicted"] = predictions.judged(self.predicted)
        changed = self.shown.source_sha256 != entry.sha256
        facts["source"] = f"{'changed' if changed else 'unchanged'} since the last run"
        return facts


def previous_runs(
    entries: Sequence[Entry], answers: Mapping[str, Answered]
) -> dict[str, PreviousRuns]:
    """By the name of the scenario, of those that have run on this machine; `answers`: the last
    prediction of each.
    """
    earlier: dict[str, PreviousRuns] = {}
    with Store() as store:
        newest = {(run.path, run.scenario): run for run in store.newest_of_each()}
        for entry in entries:
            run = newest.get((str(entry.path), entry.name))
            if run is not None:
                shown = store.last_result(run)
                earlier[entry.name] = PreviousRuns(shown, run, answers.get(entry.name))
    return earlier


def add_run(
    before: PreviousRuns | None, run: Run, predicted: Answered | None
) -> PreviousRuns | None:
    """With a run that has ended; None where nothing is known of any."""
    try:
        newest = past_run(run.state, run.report)
    except ValidationError:  # out of range
        newest = None
    if newest is None:
        return before
    predicted = predicted or (before.predicted if before else None)
    if before is not None and _keeps_shown(before.shown, newest):
        return PreviousRuns(before.shown, newest, predicted)
    return PreviousRuns(newest, newest, predicted)


def _keeps_shown(shown: PastRun, newest: PastRun) -> bool:
    """Return whether what is shown stands for the scenario beside a newer run: as in the store."""
    if newest.smoke != shown.smoke:
        return newest.smoke
    return newest.stopped and shown.measured


def read_run(past: PastRun) -> Run | str:
    """The run of the past as its file tells it; or the problem where it cannot be read."""
    path = Path(past.run_file)
    try:
        return whole_run(path)
    except RunFileError as error:
        return str(error)
    except OSError as error:
        return f"{error.strerror or error}: {at_home(path)}"


def _age_words(run: PastRun) -> str:
    age = ago(run, datetime.now(UTC))
    return "just now" if age == "now" else f"{age} ago"
