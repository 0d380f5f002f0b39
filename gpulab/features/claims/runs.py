"""What a source claims of each lesson, beside the newest run of it on this machine or, without one,
the recording that ships.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from gpulab.catalog.catalog import Entry, ScenarioRow, catalog, folders
from gpulab.catalog.kernels import kernels_of
from gpulab.catalog.recordings import recording
from gpulab.catalog.source import real_path
from gpulab.catalog.view import best_comparison
from gpulab.core.host import host_name
from gpulab.core.run_file import RunFileError
from gpulab.features import part
from gpulab.report.past import PastComparison, PastRun, past_run
from gpulab.session.run import whole_run
from gpulab.session.store import Store

_LIMITS = re.compile(
    r"^## Where [^\n]*\b(?:not|nothing|little|less|ends)\b[^\n]*\n(.*?)(?=^## |\Z)",
    re.MULTILINE | re.DOTALL,
)
"""The part of a lesson that says where its technique gains nothing."""
_SENTENCE_END = re.compile(r"(?<=[.:]) ")


@dataclass(frozen=True)
class Claim:
    """A lesson with its claim; the run beside it, which was `recorded_on` a kind of device where it
    is not of this machine.
    """

    row: ScenarioRow
    when_not: str = ""
    run: PastRun | None = None
    recorded_on: str = ""
    params: str = ""
    """Those of the run that are not the lesson's own."""
    lines: tuple[int, int] | None = None
    """(new, gone) from the baseline's code to that of the best variant."""

    @property
    def best(self) -> PastComparison | None:
        """Return the comparison of the best variant; None where the run compared none."""
        best = best_comparison(self.run) if self.run else None
        return best if isinstance(best, PastComparison) else None


def claims() -> Iterator[tuple[str, list[Claim]]]:
    """Yield each topic with its lessons: the recordings of all take seconds to read."""
    newest: dict[tuple[str, str], PastRun] = {}
    with Store() as store:
        for run in store.runs():
            if run.measured and not run.smoke and run.host == host_name():
                newest.setdefault((run.path, run.scenario), run)
    shipped = real_path(folders()[-1])
    lessons = [entry for entry in catalog() if entry.scenario and entry.path.parent == shipped]
    for topic, members in groupby(lessons, key=lambda entry: entry.row.topic):
        yield topic, [_claim(entry, newest.get((str(entry.path), entry.name))) for entry in members]


def _claim(entry: Entry, own: PastRun | None) -> Claim:
    run = own or _recorded(entry.name)
    claim = Claim(entry.row, when_not(entry.row.lesson), run)
    if run is None:
        return claim
    lines = None
    if best := claim.best:
        pair = (best.against, best.variant)
        kernels = kernels_of(entry.source, pair, run.params)
        lines = part("code.view:lines_between", entry.source, pair, kernels)
    return replace(
        claim,
        recorded_on="" if own else entry.row.recording,
        params=part("history.view:differing", run, entry.scenario) or "",
        lines=lines,
    )


def _recorded(name: str) -> PastRun | None:
    path = recording(name)
    if path is None:
        return None
    try:
        run = whole_run(path)
    except (OSError, RunFileError):
        return None
    return past_run(run.state, run.report)


def when_not(lesson: str) -> str:
    """Return the first sentence of its part on where the technique does not help, one that begins
    with *Where* if there is one; empty where there is no such part.
    """
    found = _LIMITS.search(lesson)
    if found is None:
        return ""
    sentences = [
        sentence
        for paragraph in found[1].replace("`", "").split("\n\n")
        for sentence in _SENTENCE_END.split(" ".join(paragraph.split()))
        if sentence
    ]
    first = next((each for each in sentences if each.startswith("Where ")), sentences[0])
    return f"{first[:-1]}." if first.endswith(":") else first
