"""Sessions over workers of a few lines."""

import sys
import textwrap
from pathlib import Path

from gpulab.core.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.core.run_file import RunFile
from gpulab.session.session import Session

VARIANTS = (VariantInfo(name="a"), VariantInfo(name="b", against="a"))
TESTS = Path(__file__).parents[1]
HEAD = f"""
import os, sys, time
sys.path.insert(0, {str(TESTS)!r})
from gpulab.core.machine import Device
from gpulab.core.events import *
from gpulab.features.telemetry.events import Telemetry
from found import finding
from gpulab.core.wire import numbered
from gpulab.core.statuses import Stage
from worker_pipe import WorkerPipe
pipe = WorkerPipe()
FD, JOB, emit, end = pipe.fd, pipe.job, pipe.emit, pipe.end
READY = WorkerReady(pid=os.getpid(), device=Device(kind="cpu", name="cpu"), environment={{}})
def notice(code): emit(FindingMade(finding=finding(code)))
"""


def request(*, time_s=1.0, **options):
    """A request to measure a and b, without telemetry unless `options` say so."""
    subject = ScenarioFile(scenario="s", path="s.py", source_sha256="0", variants=VARIANTS)
    return RunRequest(
        **{"job": Measure(subject=subject, time_s=time_s), "telemetry": "off", **options}
    )


def start_session(folder, code, **options):
    """A session whose worker is `code`, which finds `emit(event)`, `notice(code)`, `end()`, `pipe`,
    READY, JOB.
    """
    worker = folder / "worker.py"
    worker.write_text(HEAD + textwrap.dedent(code))
    session = Session(
        request(**options), RunFile(folder / "run.jsonl", "0"), (sys.executable, str(worker))
    )
    session.start()
    return session


def finished(folder, code, **options):
    """All events of such a session."""
    session = start_session(folder, code, **options)
    assert session.wait(20)
    return session.take()


def of_type(events, event_type):
    return [event for event in events if isinstance(event, event_type)]


def findings(events):
    """Of all notices of these events."""
    return [event.finding for event in events if type(event).__name__ == "FindingMade"]
