"""Processes that a scenario puts out of its supervisor's reach are found and ended; those of others
are left alone.
"""

import ctypes
import subprocess
import sys
import time

import psutil
import pytest
from conftest import MARK
from worker_without_torch import events_of_session

from gpulab.core.events import FindingMade, VariantFailed

DAEMON = """
def daemon(act):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            act()
        os._exit(0)
    os.wait()
    time.sleep(0.2)

def floods():
    while True:
        os.write(1, b"x" * 1000)
"""
FLOODS = "daemon(floods); os.kill(os.getppid(), 9); time.sleep(600)"
SERVE = """
import os, time
def serve(channel, job, buffer, position, forks):
    {statement}
"""


@pytest.fixture
def stranger():
    """A child of this process that has nothing to do with the lab."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def test_what_outlives_the_supervisor_is_ended_and_counted(lab, monkeypatch, stranger):
    monkeypatch.setenv(MARK, lab.mark)
    before = zombies()
    path = lab.write("strays.py", DAEMON + SERVE.format(statement=FLOODS))
    events = events_of_session(path, ["good", "bad"])
    assert lab.none_left()
    assert stranger.poll() is None
    findings = {
        event.finding.code: event.finding for event in events if isinstance(event, FindingMade)
    }
    assert findings["processes_left_running"].values == {"count": 1}
    assert [event.cause.code for event in events if isinstance(event, VariantFailed)] == [
        "supervisor_gone"
    ]
    assert zombies() == before
    assert not adopts()


def zombies():
    """Children of this process that are dead and not buried."""
    time.sleep(0.1)
    return [
        child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE
    ]


def adopts():
    """Whether processes whose parents die become children of this one."""
    answer = ctypes.c_int()
    ctypes.CDLL(None).prctl(37, ctypes.byref(answer), 0, 0, 0)
    return bool(answer.value)
