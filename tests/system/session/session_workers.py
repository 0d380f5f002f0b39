"""Sessions over workers of a few lines."""

import sys
import textwrap

from gpulab.protocol.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.protocol.run_file import RunFile
from gpulab.session.session import Session

VARIANTS = (VariantInfo(name="a"), VariantInfo(name="b", against="a"))
HEAD = """
import os, sys, time
import msgspec
from gpulab.protocol.device import Device
from gpulab.protocol.events import *
from gpulab.protocol.finding import finding
from gpulab.protocol.jobs import AnyJob, Profile
from gpulab.protocol.wire import encode
FD = int(sys.argv[1])
JOB = msgspec.json.decode(sys.stdin.buffer.readline(), type=AnyJob)
READY = WorkerReady(pid=os.getpid(), device=Device(kind="cpu", name="cpu"), environment={})
def emit(event): os.write(FD, encode(event))
def notice(code): emit(Noticed(finding=finding(code)))
"""


def request(*, time_s=1.0, **options):
    """A request to measure a and b, without telemetry unless `options` say so."""
    subject = ScenarioFile(scenario="s", path="s.py", source_sha256="0", variants=VARIANTS)
    return RunRequest(**{"job": Measure(subject=subject, time_s=time_s), "telemetry": "off", **options})


def start_session(folder, code, **options):
    """A session whose worker is `code`, which finds `emit(event)`, `notice(code)`, READY, and its JOB."""
    worker = folder / "worker.py"
    worker.write_text(HEAD + textwrap.dedent(code))
    session = Session(request(**options), RunFile(folder / "run.jsonl", "0"), (sys.executable, str(worker)))
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
    return [event.finding for event in events if type(event).__name__ == "Noticed"]
