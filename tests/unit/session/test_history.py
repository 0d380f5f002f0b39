"""Earlier runs: which count, what a new one is told of them, and an index that survives whatever
happens to it.
"""

import fcntl
import os
import threading
import time

import msgspec
import pytest
from msgspec.structs import replace
from recorded import write_run

from gpulab.core import events as e
from gpulab.core.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.core.limits import HISTORY_BYTES
from gpulab.core.machine import Device
from gpulab.core.statuses import Conclusion, ExitCode
from gpulab.features.history.report import PastComparison, PastRun, past_run
from gpulab.report.build import build_report, fold_all
from gpulab.session import history_index
from gpulab.session.history import History, keep
from gpulab.session.history_index import HistoryIndex
from gpulab.session.run import File, Run
from gpulab.session.run_files import state_folder

SHA = "ab" * 32
DEVICE = Device(kind="cuda", name="NVIDIA H200", uuid="GPU-1", threads=1)
VERSIONS = {
    "torch": "2.13.0",
    "driver": "580.1",
    "gpulab": "0.4.1",
    "python": "3.12.4",
    "platform": "Linux",
}
VARIANTS = (VariantInfo(name="loop"), VariantInfo(name="bmm", against="loop"))
READY = e.WorkerReady(pid=1, device=DEVICE, environment=VERSIONS)


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("socket.gethostname", lambda: "here")
    return state_folder()


def request(**changes):
    subject = ScenarioFile(
        scenario="x", path="x.py", source_sha256=SHA, variants=VARIANTS, params={"n": 64}
    )
    return RunRequest(job=Measure(subject=subject, **changes))


def past(number, speedup=1.5, **changes):
    run = PastRun(
        at=f"2026-11-20T00:{number // 60:02d}:{number % 60:02d}.{number:06d}+00:00",
        host="here",
        run_file=f"/runs/{number}.jsonl",
        scenario="x",
        path="x.py",
        source_sha256=SHA,
        params={"n": 64},
        device=DEVICE,
        environment=VERSIONS,
        outcome=Conclusion.MEASURED,
        exit_code=ExitCode.MEASURED,
        comparisons=(
            PastComparison(variant="bmm", against="loop", verdict="faster", speedup=speedup),
        ),
    )
    return replace(run, **changes)


def every(index):
    """All runs, the oldest first."""
    return [run for part in index.parts() for run in part.runs][::-1]


def told(*runs, events=(READY,), job=None):
    """What a run that sees these events is told of the earlier ones."""
    index = HistoryIndex(state_folder())
    assert all(index.add(run) for run in runs)
    history = History(job or request())
    history.read()
    return [earlier for event in events if (earlier := history.see(event)) is not None]


def speedups(*runs, **more):
    return [past.speedups for earlier in told(*runs, **more) for past in earlier.comparisons]


def test_a_run_is_told_of_earlier_ones_once_it_has_its_device():
    (earlier,) = told(past(1, 1.5), past(2, 1.6), events=(e.Stopped(reason="width"), READY))
    (comparison,) = earlier.comparisons
    assert (comparison.variant, comparison.against, comparison.speedups) == (
        "bmm",
        "loop",
        [1.5, 1.6],
    )


def test_the_first_run_has_none_and_leaves_an_index(folder):
    assert told() == []
    assert (folder / "history.jsonl").read_text() == '{"format":"gpulab.history","version":1}\n'


@pytest.mark.parametrize(
    "changes",
    [
        {"source_sha256": "cd" * 32},
        {"params": {"n": 65}},
        {"host": "elsewhere"},
        {"device": replace(DEVICE, uuid="GPU-2")},
        {"device": replace(DEVICE, threads=2)},
        {"environment": {**VERSIONS, "torch": "2.13.1"}},
        {"environment": {**VERSIONS, "driver": "581"}},
        {"environment": {**VERSIONS, "gpulab": "0.5.0"}},
        {"smoke": True},
        {"quick": True},
        {"outcome": Conclusion.INTERRUPTED},
        {"outcome": Conclusion.INVALID},
        {"outcome": Conclusion.FAILED},
        {"comparisons": (PastComparison(variant="bmm", against="loop", verdict="wrong"),)},
    ],
)
def test_only_what_measured_the_same_counts(changes):
    assert speedups(past(1, **changes), past(2, 1.7)) == [[1.7]]


@pytest.mark.parametrize(
    "changes",
    [
        {"environment": {**VERSIONS, "gpulab": "0.4.9", "python": "3.12.9", "platform": "another"}},
        {"outcome": Conclusion.SLOWER},
        {"outcome": Conclusion.INCONCLUSIVE},
        {"path": "moved.py", "scenario": "moved", "seed": 3},
    ],
)
def test_what_does_not_change_the_result_does_not_matter(changes):
    assert speedups(past(1, 1.6, **changes), past(2, 1.7)) == [[1.6, 1.7]]


def test_the_newest_runs_are_enough():
    (values,) = speedups(*(past(number, 1 + number) for number in range(70)))
    assert values == [1.0 + number for number in range(20, 70)]


@pytest.mark.parametrize("changes", [{"smoke": True}, {"quick": True}])
def test_a_run_that_does_not_count_is_told_nothing(changes):
    assert told(past(1), job=request(**changes)) == []


def test_points_of_a_sweep_beside_each_other_are_no_run_of_the_scenario():
    point = VariantInfo(name="bmm n=64", function="bmm", params={"n": 64})
    job = request().job
    swept = RunRequest(job=replace(job, subject=replace(job.subject, variants=(point,))))
    assert told(past(1), job=swept) == []
    state = recorded_state(swept)
    assert past_run(state, build_report(state)) is None


def recorded_events(asked=None, outcome="done"):
    started = e.RunStarted(
        t=1.0, request=asked or request(), at="2026-11-21T00:00:00+00:00", host="here"
    )
    return [
        started,
        replace(READY, t=2.0),
        e.Stopped(t=3.0, reason="time"),
        e.RunEnded(t=4.0, outcome=outcome),
    ]


def recorded_state(asked=None):
    return fold_all(recorded_events(asked))


def test_a_run_that_ended_is_kept_with_all_that_a_list_of_runs_shows():
    state = recorded_state()
    keep(state, build_report(state, "run.jsonl"))
    (kept,) = every(HistoryIndex(state_folder()))
    assert (kept.scenario, kept.at, kept.host, kept.run_file) == (
        "x",
        "2026-11-21T00:00:00+00:00",
        "here",
        "run.jsonl",
    )
    assert (kept.params, kept.device, kept.outcome, kept.elapsed_s) == (
        {"n": 64},
        DEVICE,
        "measured",
        3.0,
    )
    assert kept.key == past(1).key


def test_a_missing_index_is_made_again_of_the_run_files(folder):
    runs = folder / "runs"
    runs.mkdir(parents=True)
    write_run(runs / "20261121T000000-x-1.jsonl", recorded_events())
    write_run(runs / "20261121T000001-x-1.jsonl", recorded_events()[:-1])  # it still runs
    (runs / "20261121T000002-x-1.jsonl").write_text("no run file")
    (runs / "20261121T000003-x-1.jsonl").mkdir()
    os.mkfifo(runs / "20261121T000004-x-1.jsonl")
    (kept,) = every(HistoryIndex(folder))
    assert kept.run_file.endswith("20261121T000000-x-1.jsonl")
    assert (folder / "history.jsonl").read_bytes().count(b"\n") == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-9],
        lambda data: data[:-9] + b"\n",
        lambda data: data.replace(b"speedup", b"speed"[::-1]) + b'{"at":1}\n',
        lambda data: b"\0" * 100 + data,
        lambda data: b"",
        lambda data: data + b"[" * 100_000,
    ],
)
def test_a_torn_index_keeps_what_can_be_read_and_is_whole_again(folder, damage):
    index = HistoryIndex(folder)
    path = folder / "history.jsonl"
    for number in range(3):
        index.add(past(number))
    path.write_bytes(damage(path.read_bytes()))
    index.add(past(7))
    assert past(7) in every(index)
    lines = path.read_bytes().splitlines()
    assert lines[0] == b'{"format":"gpulab.history","version":1}'
    assert all(msgspec.json.decode(line) for line in lines)
    assert path.read_bytes().endswith(b"\n")


def test_an_index_of_a_newer_gpulab_is_left_alone(folder):
    folder.mkdir()
    path = folder / "history.jsonl"
    path.write_text('{"format":"gpulab.history","version":2}\n{"new":1}\n')
    before = path.read_bytes()
    index = HistoryIndex(folder)
    assert (every(index), index.add(past(1)), path.read_bytes()) == ([], False, before)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_no_index(folder, make):
    folder.mkdir()
    make(folder / "history.jsonl")
    index = HistoryIndex(folder)
    assert (every(index), index.add(past(1))) == ([], False)


def test_a_folder_that_cannot_be_written_is_no_history(tmp_path):
    (tmp_path / "file").write_text("")
    index = HistoryIndex(tmp_path / "file" / "gpulab")
    assert (every(index), index.add(past(1))) == ([], False)


def test_a_run_that_could_not_be_read_again_is_not_kept(folder):
    index = HistoryIndex(folder)
    index.add(past(1))
    for changes in (
        {"title": "x" * 5000},
        {"path": "\udcff"},
        {"params": {f"n{n}": "x" * 4000 for n in range(50)}},
    ):
        assert not index.add(past(2, **changes))
    assert every(index) == [past(1)]


def test_it_does_not_grow_without_end(folder, monkeypatch):
    monkeypatch.setattr(history_index, "_MOST_BYTES", 20_000)
    index = HistoryIndex(folder)
    for number in range(200):
        assert index.add(past(number))
        assert (folder / "history.jsonl").stat().st_size <= 20_000
    kept = every(index)
    assert kept[-1] == past(199)
    assert 5 < len(kept) < 100


def test_writers_beside_each_other_lose_nothing(folder):
    def write(writer):
        for number in range(20):
            assert HistoryIndex(folder).add(past(100 * writer + number))

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({run.run_file for run in every(HistoryIndex(folder))}) == 100


def test_a_lock_that_is_never_given_back_costs_the_entry_and_little_time(folder, monkeypatch):
    monkeypatch.setattr(history_index, "_LOCK_S", 0.05)
    index = HistoryIndex(folder)
    index.add(past(1))
    with (folder / "history.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert not index.add(past(2))
    assert every(index) == [past(1)]


def test_a_full_index_is_read_in_milliseconds(folder):
    """Counted in decoded runs, not in seconds: of all lines only those of the file that runs are
    decoded.
    """
    index = HistoryIndex(folder)
    index.add(past(1))
    assert every(index) == [past(1)]
    line = (folder / "history.jsonl").read_bytes().splitlines(keepends=True)[1]
    other = line.replace(SHA.encode(), b"cd" * 32)
    with (folder / "history.jsonl").open("ab") as file:
        file.write(other * ((HISTORY_BYTES - 2 * len(line)) // len(other)))
    decoded = []
    decoder = history_index._decoder

    class Counting:
        def decode(self, line):
            decoded.append(line)
            return decoder.decode(line)

    history_index._decoder, started = Counting(), time.perf_counter()
    try:
        assert index.runs(SHA) == [past(1)]
    finally:
        history_index._decoder = decoder
    print(f"{1000 * (time.perf_counter() - started):.1f} ms")
    assert len(decoded) == 1


def test_a_run_file_that_is_read_is_no_new_run(folder, tmp_path):
    run = Run(File(write_run(tmp_path / "run.jsonl", recorded_events())))
    run.poll()
    assert run.report.outcome == "measured"
    assert every(HistoryIndex(folder)) == []
