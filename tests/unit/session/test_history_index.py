"""The index of runs is made again from the run files: all of them, the newest first, and never at
the cost of a run.
"""

import threading
from pathlib import Path

import msgspec
import pytest
from recorded import write_run

from gpulab.core import events as e
from gpulab.core.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.core.machine import Device
from gpulab.features.history.report import past_run
from gpulab.report.build import build_report, fold_all
from gpulab.session import history_index
from gpulab.session.history_index import HistoryIndex

SHA = "ab" * 32
COUNT = 150


def events(number):
    subject = ScenarioFile(
        scenario="x", path="x.py", source_sha256=SHA, variants=(VariantInfo(name="a"),)
    )
    at = f"2026-11-21T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}+00:00"
    request = RunRequest(job=Measure(subject=subject))
    ready = e.WorkerReady(t=2.0, pid=1, device=Device(kind="cpu", name="CPU"), environment={})
    return [
        e.RunStarted(t=1.0, request=request, at=at, host="h"),
        ready,
        e.RunEnded(t=3.0, outcome="done"),
    ]


def name(number):
    return f"20261121T{number:06}-x-1.jsonl"


def past(folder, number):
    state = fold_all(events(number))
    return past_run(state, build_report(state, str(folder / "runs" / name(number))))


@pytest.fixture
def folder(tmp_path):
    """Run files without an index: more than are read in one step where each counts."""
    (tmp_path / "runs").mkdir()
    for number in range(COUNT):
        write_run(tmp_path / "runs" / name(number), events(number))
    return tmp_path


@pytest.fixture
def read(monkeypatch):
    """The names of the run files that are read, in order; each is a part of its own."""
    names = []
    run_of = history_index._run_of

    def counting(path):
        names.append(path.name)
        return run_of(path)

    monkeypatch.setattr(history_index, "_run_of", counting)
    monkeypatch.setattr(history_index, "_PART_S", 0.0)
    return names


def files(runs):
    """The names of their run files."""
    return [Path(run.run_file).name for run in runs]


def every(folder):
    """All runs, as they come."""
    return [run for part in HistoryIndex(folder).parts() for run in part.runs]


def header(folder):
    return msgspec.json.decode((folder / "history.jsonl").read_bytes().partition(b"\n")[0])


NEWEST_FIRST = [name(number) for number in reversed(range(COUNT))]
WHOLE = {"format": "gpulab.history", "version": 1}


def test_a_missing_index_is_made_again_of_all_run_files(folder, read):
    parts = [part for part in HistoryIndex(folder).parts() if part.files]
    assert [(part.read, part.files) for part in parts] == [
        (number, COUNT) for number in range(1, COUNT + 1)
    ]
    assert files(run for part in parts for run in part.runs) == NEWEST_FIRST
    assert header(folder) == WHOLE
    assert files(every(folder)) == NEWEST_FIRST
    assert read == NEWEST_FIRST, "each once, and none any more once the index is whole"


def test_what_was_read_by_one_who_leaves_is_kept_and_the_next_goes_on(folder, read):
    parts = HistoryIndex(folder).parts()
    while next(parts).read < 40:
        pass
    parts.close()
    assert header(folder)["unread_below"] == NEWEST_FIRST[39]
    assert files(every(folder)) == NEWEST_FIRST
    assert read == NEWEST_FIRST


def test_it_is_kept_while_it_is_read(folder, read, monkeypatch):
    monkeypatch.setattr(history_index, "_SAVE_S", 0.0)
    parts = HistoryIndex(folder).parts()
    while next(parts).read < 40:
        pass
    lines = (folder / "history.jsonl").read_bytes().splitlines()
    assert len(lines) - 1 == 39, "a part is handed over before it is kept"
    parts.close()


def test_before_a_run_a_moment_is_spent_and_each_brings_it_further(folder, read, monkeypatch):
    monkeypatch.setattr(history_index, "_STEP_S", 0.0)
    index = HistoryIndex(folder)
    assert files(index.runs(SHA)) == NEWEST_FIRST[:1]
    assert files(index.runs(SHA)) == NEWEST_FIRST[1::-1]
    assert files(index.newest_of_each()) == NEWEST_FIRST[:1]
    assert read == NEWEST_FIRST[:3]


def test_a_run_that_ends_reads_no_run_file(folder, read):
    for number in (COUNT, COUNT + 1):
        assert HistoryIndex(folder).add(past(folder, number))
    assert read == []
    assert files(every(folder)) == [name(COUNT + 1), name(COUNT), *NEWEST_FIRST]


def test_the_run_of_a_torn_line_is_read_again(folder, read):
    every(folder)
    path = folder / "history.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for torn in (
        b"".join([*lines[:50], lines[50][:70], *lines[51:]]),
        b"".join([*lines[:50], b'{"at":1}\n', *lines[51:]]),
        whole[:-20],
    ):
        read.clear()
        path.write_bytes(torn)
        runs = every(folder)
        assert sorted(files(runs), reverse=True) == NEWEST_FIRST
        assert len(read) in (1, 2), "the others are known"
        assert path.read_bytes() == whole


def test_a_line_after_one_that_was_cut_off_is_whole(folder):
    every(folder)
    path = folder / "history.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert HistoryIndex(folder).add(past(folder, COUNT))
    assert path.read_bytes().endswith(msgspec.json.encode(past(folder, COUNT)) + b"\n")
    assert sorted(files(every(folder)), reverse=True) == [name(COUNT), *NEWEST_FIRST]


def test_runs_that_end_while_it_is_read_again_are_not_lost(folder, monkeypatch):
    monkeypatch.setattr(history_index, "_PART_S", 0.0)
    monkeypatch.setattr(history_index, "_SAVE_S", 0.0)
    added = [past(folder, number) for number in range(COUNT, COUNT + 40)]
    writers = [
        threading.Thread(
            target=lambda runs=added[start::2]: [HistoryIndex(folder).add(run) for run in runs]
        )
        for start in range(2)
    ]
    for writer in writers:
        writer.start()
    every(folder)
    for writer in writers:
        writer.join()
    assert sorted(files(every(folder)), reverse=True) == [*reversed(files(added)), *NEWEST_FIRST]
    assert header(folder) == WHOLE


def test_two_that_read_it_again_at_once_each_have_all_runs(folder, read, monkeypatch):
    monkeypatch.setattr(history_index, "_SAVE_S", 0.0)
    first, second = HistoryIndex(folder).parts(), HistoryIndex(folder).parts()
    while next(first).read < 20:
        pass
    runs = [run for part in second for run in part.runs]
    assert sorted(files(runs), reverse=True) == NEWEST_FIRST
    list(first)
    assert files(every(folder)) == NEWEST_FIRST


def test_what_cannot_be_kept_is_read_all_the_same(folder, monkeypatch):
    (folder / "history.lock").mkdir()
    assert files(every(folder)) == NEWEST_FIRST
    assert not (folder / "history.jsonl").exists()


def test_of_a_full_index_the_newest_runs_stay(folder, monkeypatch):
    monkeypatch.setattr(history_index, "_MOST_BYTES", 20_000)
    every(folder)
    kept = files(every(folder))
    assert kept == NEWEST_FIRST[: len(kept)]
    assert 10 < len(kept) < COUNT
    assert header(folder) == WHOLE, "the others do not fit: it is as whole as it can be"


def test_an_entry_that_is_twice_in_it_is_one_run(folder):
    every(folder)
    assert HistoryIndex(folder).add(past(folder, 7))
    assert sorted(files(every(folder)), reverse=True) == NEWEST_FIRST
    assert len(HistoryIndex(folder).runs(SHA)) == COUNT
