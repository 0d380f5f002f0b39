"""How a run ended: from what a worker and its supervisor reported of themselves, or from the lack
of it.
"""

import signal

import pytest
from found import finding
from recorded import SMALL_REQUEST

from gpulab.core import events as e
from gpulab.core.jobs import RunRequest
from gpulab.core.statuses import FailureKind, Outcome, Stage
from gpulab.core.wire import numbered, of_supervisor
from gpulab.session.transcript import WorkerTranscript, failure_of

TRACE = (
    'File "torch/x.py", line 9 in mm\n  File "s.py", line 22 in step\n  File "s.py", line 30 in '
    "run\n"
)


def exited(code=None, signal=None, variant="b", **changes):
    usual = {"stage": Stage.MEASURE, "trace": TRACE}
    return WorkerTranscript(
        exited=e.WorkerExited(code=code, signal=signal, variant=variant, **{**usual, **changes}),
    )


def failure(transcript, stopped=None, error=None, request=SMALL_REQUEST):
    return failure_of(request, transcript, stopped, error)


@pytest.mark.parametrize(
    ("transcript", "stopped", "kind", "cause"),
    [
        (exited(signal=signal.SIGKILL), None, FailureKind.KILLED, finding("killed")),
        (
            exited(signal=signal.SIGSEGV),
            None,
            FailureKind.CRASH,
            finding("crashed", signal="SIGSEGV", meaning="Segmentation fault"),
        ),
        (exited(code=97), None, FailureKind.CRASH, finding("event_pipe_closed")),
        (exited(code=3), None, FailureKind.EXIT, finding("worker_exited", code=3)),
        (
            exited(signal=signal.SIGTERM),
            Outcome.TIMEOUT,
            FailureKind.TIMEOUT,
            finding("timeout", timeout_s=6.0),
        ),
        (
            exited(signal=signal.SIGTERM),
            Outcome.CANCELLED,
            FailureKind.CANCELLED,
            finding("cancelled"),
        ),
    ],
)
def test_an_exit_has_a_kind_a_cause_and_the_line_of_the_scenario(transcript, stopped, kind, cause):
    request = RunRequest(job=SMALL_REQUEST.job, timeout_s=6.0)
    event = failure(transcript, stopped, request=request)
    assert (event.kind, event.cause) == (kind, cause)
    assert (event.variant, event.stage, event.line, event.traceback) == (
        "b",
        Stage.MEASURE,
        22,
        TRACE,
    )


@pytest.mark.parametrize(
    ("stopped", "kind"),
    [
        (None, FailureKind.KILLED),
        (Outcome.TIMEOUT, FailureKind.TIMEOUT),
        (Outcome.CANCELLED, FailureKind.CANCELLED),
    ],
)
def test_a_supervisor_without_a_last_word_is_the_end_of_the_run(stopped, kind):
    event = failure(WorkerTranscript(), stopped)
    assert (event.kind, event.stage, event.cause) == (kind, Stage.END, finding("supervisor_gone"))


def test_a_transcript_is_complete_once_worker_and_supervisor_have_said_so():
    transcript = WorkerTranscript()
    assert transcript.take(numbered(0, e.FindingMade(finding=finding("x"))).strip()) is not None
    assert transcript.take(numbered(1, e.WorkerDone(sent=1)).strip()) is not None
    assert not transcript.complete
    end = exited(code=0, stage=Stage.END).exited
    assert transcript.take(numbered(2, end).strip()) is None
    assert not transcript.complete
    assert transcript.take(of_supervisor(end).strip()) == end
    assert transcript.complete
    assert [problem.code for problem in transcript.problems] == ["event_after_end"]


def test_an_end_that_never_came_is_a_lost_event():
    transcript = exited(code=0, stage=Stage.END)
    assert transcript.complete
    assert transcript.problems == [finding("events_lost", count=1)]


@pytest.mark.parametrize(
    ("orphans", "malformed", "done", "codes"),
    [
        (0, 0, True, []),
        (2, 0, True, ["processes_left_running"]),
        (0, 1, True, ["malformed_event_lines"]),
        (0, 1, False, []),
        (1, 2, False, ["processes_left_running", "malformed_event_lines"]),
    ],
)
def test_what_a_worker_left_behind_is_a_finding(orphans, malformed, done, codes):
    transcript = exited(code=0, orphans=orphans)
    transcript.malformed, transcript.done = malformed, e.WorkerDone(sent=0) if done else None
    assert [problem.code for problem in transcript.findings] == codes
    assert [problem.values["count"] for problem in transcript.findings] == [
        count for count in (orphans, malformed) if count
    ][: len(codes)]
