"""The session: one ordered stream, nothing lost, whatever the worker does."""

import os
import resource
import signal
import textwrap
import time
from contextlib import suppress

import psutil
import pytest
from conftest import wait_for
from found import finding
from session_workers import findings, finished, of_type, request, start_session

from gpulab.core import events as e
from gpulab.core.run_file import RunFile, read_run_file
from gpulab.core.statuses import ExitCode, FailureKind, Outcome, Stage
from gpulab.features.telemetry.events import Telemetry, TelemetryEnded, TelemetryLost
from gpulab.report.build import build_report, fold_all
from gpulab.session.session import Session


def test_the_stream_the_file_and_the_order_are_one(tmp_path):
    session = start_session(tmp_path, "print('hello')\nnotice('first')\nend()")
    assert session.wait(20)
    events = session.take()
    assert isinstance(events[0], e.RunStarted)
    assert events[-1].outcome == Outcome.DONE
    assert read_run_file(session.path).events == events
    assert session.take() == []
    assert [event.lines for event in of_type(events, e.Log)] == [["hello"]]


def test_the_events_and_the_output_of_a_worker_are_both_read_to_their_ends(tmp_path):
    code = """
        for number in range(3000):
            emit(Reported(variant=None, name="number", value=number))
            if number % 3 == 0:
                print("line", number)
        sys.stdout.flush()
        end()
    """
    events = finished(tmp_path, code)
    assert [event.value for event in of_type(events, e.Reported)] == list(range(3000))
    assert [line for log in of_type(events, e.Log) for line in log.lines] == [
        f"line {3 * n}" for n in range(1000)
    ]
    assert events[-1].outcome == Outcome.DONE


def test_a_worker_that_ends_without_its_end_has_crashed(tmp_path):
    events = finished(tmp_path, "notice('first')\nos._exit(9)")
    failure, end = events[-2:]
    assert (failure.kind, failure.cause.code, failure.variant) == (
        FailureKind.KILLED,
        "supervisor_gone",
        None,
    )
    assert end.outcome == Outcome.FAILED


def test_a_worker_that_cannot_be_started_is_an_event(tmp_path):
    session = Session(request(), RunFile(tmp_path / "run.jsonl", "0"), ("/nothing/there",))
    session.start()
    assert session.wait(20)
    failure, end = session.take()[-2:]
    assert (failure.kind, failure.stage, failure.cause.code) == (
        FailureKind.CRASH,
        Stage.START,
        "worker_not_run",
    )
    assert "/nothing/there" in failure.cause.values["message"]
    assert end.outcome == Outcome.FAILED


def test_cancelling_ends_a_worker_that_has_no_end(tmp_path, monkeypatch):
    # Without a supervisor there is no last word to wait for.
    monkeypatch.setattr("gpulab.session.session._SHUTDOWN_TIMEOUT_S", 0.5)
    session = start_session(tmp_path, "notice('up')\ntime.sleep(600)")
    events = []
    while not of_type(events, e.FindingMade):
        events += session.take()
        time.sleep(0.02)
    session.cancel()
    session.cancel()
    assert session.wait(20)
    failure, end = session.take()[-2:]
    assert failure.kind == FailureKind.CANCELLED
    assert end.outcome == Outcome.CANCELLED
    session.cancel()  # of a run that has ended: nothing
    assert session.take() == []


def test_the_timeout_ends_a_worker_that_has_no_end(tmp_path, monkeypatch):
    monkeypatch.setattr("gpulab.session.session._SHUTDOWN_TIMEOUT_S", 0.5)
    failure, end = finished(tmp_path, "notice('up')\ntime.sleep(600)", timeout_s=0.5)[-2:]
    assert failure.kind == FailureKind.TIMEOUT
    assert end.outcome == Outcome.TIMEOUT


def test_malformed_lines_are_counted_and_change_nothing(tmp_path):
    code = """
        os.write(FD, b'0 {"type":"Noti')
        time.sleep(0.1)
        os.write(FD, b'ced","t":1.0,"finding":{"code":"torn"}}\\n')
        pipe.sent = 1
        os.write(FD, b'garbage\\n9 {"type":"Noticed"}\\n{"type":"WorkerDone","sent":1}\\n')
        os.write(FD, b'1 ' + b'x' * (3 << 20) + b'\\n')
        end()
    """
    events = finished(tmp_path, code)
    assert findings(events) == [finding("torn"), finding("malformed_event_lines", count=4)]
    assert not of_type(events, e.RunInvalid)
    assert events[-1].outcome == Outcome.DONE


MISNUMBERED = {
    "lost": ("pipe.sent = 7; notice('later')", finding("events_lost", count=6)),
    "its own number": (
        "os.write(FD, numbered(1, Reported(variant='b', name='x', value=1.0))); notice('second')",
        finding("event_repeated", number=1),
    ),
}


@pytest.mark.parametrize("name", MISNUMBERED)
def test_a_lost_or_repeated_event_makes_the_run_invalid(tmp_path, name):
    code, reason = MISNUMBERED[name]
    events = finished(tmp_path, f"notice('first')\n{code}\nend()")
    assert [event.reason for event in of_type(events, e.RunInvalid)] == [reason]
    assert events[-1].outcome == Outcome.DONE
    report = build_report(fold_all(events))
    assert (report.exit_code, report.reason) == (ExitCode.INVALID, reason)
    assert all(comparison.verdict == "invalid" for comparison in report.comparisons)


@pytest.mark.parametrize(
    "code",
    [
        "pipe.exited(stage=Stage.MEASURE)",
        "pipe.exited(code=3)",
        "emit(WorkerDone(sent=2)); pipe.exited(code=1)",
    ],
)
def test_an_exit_before_the_last_stage_is_a_failure_whatever_was_said_before(tmp_path, code):
    events = finished(tmp_path, f"notice('first')\nemit(WorkerDone(sent=1))\n{code}")
    assert events[-1].outcome == Outcome.FAILED
    assert of_type(events, e.VariantFailed)[-1].cause.code == "worker_exited"


def test_a_full_disk_ends_the_file_and_not_the_run(tmp_path):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        # once it runs: neither it nor the store of earlier runs is started on a full disk
        started, full = tmp_path / "started", tmp_path / "full"
        waits = f"open({str(started)!r}, 'w')\nwhile not os.path.exists({str(full)!r}): time.sleep(0.01)"
        session = start_session(
            tmp_path, f"{waits}\n[notice('x' * 100) for _ in range(200)]\nend()"
        )
        wait_for(started.exists)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limit[1]))
        full.touch()
        assert session.wait(20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    events = session.take()
    assert events[-1].outcome == Outcome.DONE
    (cut,) = [
        event for event in of_type(events, e.FindingMade) if event.finding.code == "run_file_cut"
    ]
    assert "File too large" in cut.finding.values["message"]
    assert len(of_type(events, e.FindingMade)) == 201
    recording = read_run_file(session.path)
    assert recording.cut
    events.remove(cut)
    assert recording.events == events[: len(recording.events)]
    assert len(recording.events) < 100


def test_sampling_ends_with_the_measurement_and_its_end_is_an_event(tmp_path):
    code = """
        emit(READY)
        now = time.monotonic()
        columns = {"epoch": [0], "round": [0], "variant": [0], "cpu_s": [1e-3], "faults": [0], "switches": [0], "ended": [now], "steps": [1]}
        emit(Samples(names=("a", "b", "control"), complete=1, times_s=[1e-3], **columns))
        run = os.path.join(os.path.dirname(__file__), "run.jsonl")
        while b'"type":"Telemetry"' not in open(run, "rb").read():
            time.sleep(0.05)
        end()
    """
    events = finished(tmp_path, code, telemetry="on")
    kinds = [type(event).__name__ for event in events]
    assert kinds.count("TelemetryEnded") == 1
    end = kinds.index("TelemetryEnded")
    assert "Telemetry" in kinds[:end]
    assert not {"Telemetry", "TelemetryLost"} & set(kinds[end:])
    assert events[-1].outcome == Outcome.DONE
    later = events[-1].t + 60
    after = build_report(fold_all(events[: end + 1]), live=True, now=later).telemetry
    assert (after.stale, after.age_s) == (False, None)
    assert build_report(fold_all(events[:end]), live=True, now=later).telemetry.stale


def test_a_telemetry_process_that_is_killed_ends_telemetry_alone(tmp_path):
    session = start_session(tmp_path, "emit(READY)\ntime.sleep(1.5)\nend()", telemetry="on")
    events = []

    def sampled():
        events.extend(session.take())
        return of_type(events, Telemetry)

    wait_for(sampled)
    for child in psutil.Process().children():
        with suppress(psutil.ZombieProcess):
            if "gpulab.features.telemetry" in child.cmdline():
                child.kill()
    assert session.wait(20)
    events += session.take()
    assert [lost.reason for lost in of_type(events, TelemetryLost)] == [
        finding("telemetry_process_ended")
    ]
    assert len(of_type(events, TelemetryEnded)) == 1
    assert events[-1].outcome == Outcome.DONE


def test_somebody_who_never_stops_writing_does_not_hold_the_session(tmp_path):
    code = """
        import subprocess
        flood = subprocess.Popen(["yes"], env={}, start_new_session=True)
        open("flood", "w").write(str(flood.pid))
        os.kill(os.getpid(), 9)
    """
    try:
        events = finished(tmp_path, f"os.chdir({str(tmp_path)!r})\n{textwrap.dedent(code)}")
        assert events[-1].outcome == Outcome.FAILED
    finally:
        flood = int((tmp_path / "flood").read_text())
        os.kill(flood, signal.SIGKILL)
        os.waitpid(flood, 0)  # this process has adopted it
