"""The store: runs come back from their files, and a run goes on where it cannot be used."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from recorded import write_run

from gpulab.core import events as e
from gpulab.core.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.core.machine import Device
from gpulab.core.statuses import Conclusion
from gpulab.report.build import build_report, fold_all
from gpulab.report.past import past_run
from gpulab.session.history import History
from gpulab.session.run_files import runs_folder, state_folder
from gpulab.session.store import NAME, Store

SHA = "ab" * 32
COUNT = 7
SUBJECT = ScenarioFile(
    scenario="x", path="x.py", source_sha256=SHA, variants=(VariantInfo(name="a"),)
)
REQUEST = RunRequest(job=Measure(subject=SUBJECT))


def events(number):
    at = f"2026-11-21T00:{number // 60:02}:{number % 60:02}+00:00"
    ready = e.WorkerReady(t=2.0, pid=1, device=Device(kind="cpu", name="CPU"), environment={})
    return [
        e.RunStarted(t=1.0, request=REQUEST, at=at, host="h"),
        ready,
        e.RunEnded(t=3.0, outcome="done"),
    ]


def name(number):
    return f"20261121T{number:06}-x-1.jsonl"


def written(number):
    return write_run(runs_folder() / name(number), events(number))


def past(number):
    """The run of a run file, which need not hold anything."""
    path = runs_folder() / name(number)
    path.touch()
    state = fold_all(events(number))
    return past_run(state, build_report(state, str(path)))


def listed():
    """The names of the run files of all runs, as they come."""
    with Store() as store:
        return [Path(run.run_file).name for run in store.runs()]
    return []


NEWEST_FIRST = [name(number) for number in reversed(range(COUNT))]


@pytest.fixture(autouse=True)
def path(monkeypatch, tmp_path):
    """Where the store is to be; there are some run files, and no store yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    runs_folder().mkdir(parents=True)
    for number in range(COUNT):
        written(number)
    return state_folder() / NAME


def said_before_a_run():
    """The codes of what a run says of the store."""
    history = History(REQUEST)
    history.read()
    return [finding.code for finding in history.findings]


def test_what_is_torn_is_set_aside_and_said_once_and_the_next_has_all_runs(path):
    assert listed() == NEWEST_FIRST
    os.truncate(path, path.stat().st_size // 2)
    assert said_before_a_run() == ["store_set_aside"]
    assert Path(f"{path}.damaged").is_file()
    assert said_before_a_run() == []
    assert listed() == NEWEST_FIRST


WRITER = """
import sys
sys.path[:0] = sys.argv[2:]
import test_store as tests
for number in range(int(sys.argv[1]), int(sys.argv[1]) + 10):
    tests.written(number)
    run = tests.past(number)
    with tests.Store() as store:
        store.add_run(run)
"""


@pytest.mark.slow
def test_processes_that_make_it_and_write_to_it_at_once_lose_no_run(path):
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(100 * writer), *folders])
        for writer in range(1, 5)
    ]
    while any(writer.poll() is None for writer in writers):
        listed()
        time.sleep(0.1)
    assert [writer.returncode for writer in writers] == [0] * 4
    written = {name(100 * writer + number) for writer in range(1, 5) for number in range(10)}
    assert written <= set(listed())


def test_it_is_made_again_of_the_run_files_and_each_is_read_once(path):
    assert listed() == NEWEST_FIRST
    for number in range(COUNT):
        (runs_folder() / name(number)).write_text("no longer a run file")
    assert listed() == NEWEST_FIRST, "none is read again"
    path.unlink()
    assert listed() == []


def test_a_folder_by_another_path_or_copied_has_each_run_once(monkeypatch, tmp_path):
    assert listed() == NEWEST_FIRST
    (tmp_path / "link").symlink_to(state_folder().parent)
    shutil.copytree(state_folder(), tmp_path / "copy" / state_folder().name)
    for home in ("link", "copy"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / home))
        assert listed() == NEWEST_FIRST
        with Store() as store:
            files = [Path(run.run_file) for run in store.runs()]
        assert {file.parent for file in files} == {runs_folder()}


def test_runs_go_with_their_files_and_come_with_them(tmp_path):
    listed()
    (runs_folder() / name(3)).unlink()
    assert listed() == [file for file in NEWEST_FIRST if file != name(3)]
    written(3)
    assert listed() == NEWEST_FIRST
    copied = tmp_path / "elsewhere.jsonl"
    copied.write_bytes((runs_folder() / name(4)).read_bytes())
    with Store() as store:
        store.add_run(replace(past(4), run_file=str(copied)))
    assert "elsewhere.jsonl" in listed()
    copied.unlink()
    assert "elsewhere.jsonl" not in listed()


def test_what_is_no_run_is_passed_over_and_one_that_goes_on_comes_when_it_has_ended():
    running = write_run(runs_folder() / name(COUNT), events(COUNT)[:-1])
    (runs_folder() / name(COUNT + 1)).write_text('no run file "RunEnded"')
    (runs_folder() / name(COUNT + 2)).mkdir()
    os.mkfifo(runs_folder() / name(COUNT + 3))
    assert listed() == NEWEST_FIRST
    running.unlink()
    written(COUNT)
    assert listed() == [name(COUNT), *NEWEST_FIRST]


@pytest.mark.parametrize(
    ("kinds", "shown"),
    [
        ("measured smoke smoke", 0),
        ("measured smoke stopped", 0),
        ("measured stopped smoke", 0),
        ("measured failed smoke", 1),
        ("measured failed stopped", 2),
        ("measured smoke measured", 2),
        ("smoke smoke", 1),
        ("smoke stopped", 1),
        ("stopped smoke", 0),
    ],
)
def test_neither_a_smoke_run_nor_one_that_was_stopped_stands_for_a_result(kinds, shown):
    changes = {
        "measured": {},
        "smoke": {"smoke": True},
        "stopped": {"outcome": Conclusion.INTERRUPTED},
        "failed": {"outcome": Conclusion.FAILED},
    }
    of_other = {"scenario": "y", "path": "y.py"}
    runs = []
    with Store() as store:
        for number, kind in enumerate(kinds.split()):
            runs.append(replace(past(number), **changes[kind], **of_other))
            store.add_run(runs[-1])
        newest = next(run for run in store.newest_of_each() if run.scenario == "y")
        assert newest == runs[-1]
        assert store.last_result(newest) == runs[shown]


WITHOUT_SQLITE = """
import sys
sys.modules["sqlite3"] = None
from gpulab.core.jobs import Calibrate, RunRequest
from gpulab.session.history import History

history = History(RunRequest(job=Calibrate()))
history.read()
print(*(finding.code for finding in history.findings))
"""


def test_a_python_without_sqlite_says_so(path):
    script = [sys.executable, "-c", WITHOUT_SQLITE]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    assert done.stdout == "store_unused\n"
    assert not path.exists()


def test_what_needs_no_store_makes_none(path):
    imports = [sys.executable, "-X", "importtime", "-m", "gpulab", "--list"]
    done = subprocess.run(imports, capture_output=True, text=True, check=True)
    assert "sqlite3" not in done.stderr
    assert not path.exists()
