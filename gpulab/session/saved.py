"""Saved runs by name: run files, runs of this machine's history, and recordings that ship."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace as replace_fields

from gpulab.catalog.catalog import Entry, ScenarioRow
from gpulab.catalog.reader import EMPTY, read_text
from gpulab.catalog.recordings import recorded_name, recording, recordings
from gpulab.catalog.source import UnreadableError, is_folder
from gpulab.core.files import PACKED
from gpulab.core.jobs import RunRequest, ScenarioFile, Subject, subject_of
from gpulab.core.run_file import RunFileError
from gpulab.core.text import plain
from gpulab.core.units import plural
from gpulab.options import UsageError
from gpulab.report.build import CALIBRATION
from gpulab.report.past import PastRun
from gpulab.session.playback import Playback
from gpulab.session.run import Run, whole_run
from gpulab.session.store import Store

Kind = TypeVar("Kind")
SUFFIXES = (".jsonl", f".jsonl{PACKED}")
"""Of run files."""


def find_run(name: str) -> Path:
    """The run file that a name stands for: a path, else a scenario's newest run here (NAME~1: the
    one before it), else a recording that ships (NAME or DEVICE/NAME). UsageError where there is
    none.
    """
    path = Path(name)
    if os.path.lexists(path) and not is_folder(path):
        return path
    if name.endswith(SUFFIXES):
        raise UsageError(f"there is no file {name}")
    scenario, before = name, 0
    if matched := re.fullmatch(r"(.+)~([0-9]{1,4})", name):
        scenario, before = matched[1], int(matched[2])
    earlier: list[PastRun] = []
    with Store() as store:
        earlier = [run for run in store.runs() if run.scenario == scenario]
    # of one file: others may have a scenario of the same name
    earlier = [run for run in earlier if run.path == earlier[0].path]
    if before < len(earlier):
        return Path(earlier[before].run_file)
    if recorded := recording(name):
        return recorded
    if earlier:
        raise UsageError(f"{name}: {plural(len(earlier), 'run')} of {scenario} here")
    names = map(recorded_name, recordings())
    raise UsageError(
        f"there is no run named {name}: write a run file, a scenario that has run here, or a "
        f"recording, such as {next(names, 'none, as this gpulab was installed')}"
    )


def open_run(name: str) -> Run:
    """The run that a name stands for, as far as it came. UsageError where it cannot be read."""
    return _read(whole_run, find_run(name))


def open_playback(path: Path) -> Playback:
    """The run of a file, to be played again. UsageError where it cannot be read."""
    return _read(Playback, path)


def _read(kind: Callable[[Path], Kind], path: Path) -> Kind:
    try:
        return kind(path)
    except RunFileError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None


def entry_of(request: RunRequest, name: str = "") -> Entry:
    """Return the list entry of a run file's scenario; by its own name where none is given."""
    subject = subject_of(request.job)
    if subject is None:
        row = ScenarioRow(name=name or CALIBRATION, title="what the device can do at best")
        return Entry(row.name, Path(CALIBRATION), saved=True, row_of_file=row)
    text = EMPTY
    judge = ""
    with suppress(UnreadableError):
        text = read_text(subject.source)
        if isinstance(subject, ScenarioFile) and subject.judge:
            judge = subject.judge
            read = read_text(judge)
            text = replace(text, lesson=read.lesson, scenario=read.scenario)
    entry = Entry(
        name or subject.scenario,
        Path(subject.path),
        subject.source_sha256,
        text,
        source=subject.source,
        judge=judge,
        saved=True,
    )
    return replace(entry, row_of_file=_row_of(entry.row, subject))


def _row_of(row: ScenarioRow, subject: Subject) -> ScenarioRow:
    """The row of the text, as far as there is one, with what the run file says beside it."""
    row = replace_fields(
        row,
        title=subject.title or row.title,
        path=subject.path,
        variants=tuple(info.name for info in subject.variants),
        summaries=tuple(info.summary for info in subject.variants),
        against={info.name: info.against for info in subject.variants if info.against},
        missing=None,
        recording="",
        function=not isinstance(subject, ScenarioFile),
    )
    if not isinstance(subject, ScenarioFile):
        return row
    return replace_fields(
        row,
        topic=subject.topic,
        lesson=plain(subject.lesson) or row.lesson,
        claim=subject.claim,
        params=subject.params,
        cpu={},
        sweep={},
    )
