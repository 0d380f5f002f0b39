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
from faults import scenario
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
KILL_SUPERVISOR = "os.kill(os.getppid(), 9); time.sleep(600)"
ATTACKS = {
    "daemon": f"daemon(lambda: time.sleep(600)); {KILL_SUPERVISOR}",
    "daemon that floods": f"daemon(floods); {KILL_SUPERVISOR}",
    "no environment": f"subprocess.Popen(['/bin/sleep', '600'], env={{}}); {KILL_SUPERVISOR}",
    "worker without a signal": f"ctypes.CDLL(None).prctl(1, 0, 0, 0, 0); {KILL_SUPERVISOR}",
}
SERVE = """
import ctypes, os, subprocess, time
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


@pytest.mark.parametrize(
    "name",
    [
        "daemon that floods",
        pytest.param("no environment", marks=pytest.mark.slow),
        pytest.param("worker without a signal", marks=pytest.mark.slow),
    ],
)
def test_what_outlives_the_supervisor_is_ended_and_counted(lab, monkeypatch, stranger, name):
    monkeypatch.setenv(MARK, lab.mark)
    before = zombies()
    path = lab.write("strays.py", DAEMON + SERVE.format(statement=ATTACKS[name]))
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


GRANDPARENT = """
def supervisor():
    # Its child leads the process group of the worker.
    return int(open(f"/proc/{os.getpgid(0)}/stat").read().rpartition(")")[2].split()[1])
"""


@pytest.mark.slow
def test_a_run_whose_supervisor_is_killed_has_failed(lab):
    attack = ATTACKS["daemon"].replace("os.getppid()", "supervisor()")
    finished = lab.run(scenario(lab, build=attack, tail=DAEMON + GRANDPARENT), fresh=True)
    assert lab.none_left()
    assert finished.code == 3
    assert finished.run["reason"]["code"] == "supervisor_gone"
    assert finished.findings("processes_left_running")[0]["values"] == {"count": 1}


@pytest.mark.slow
def test_a_run_of_which_the_process_that_forks_is_killed_has_failed(lab):
    finished = lab.run(scenario(lab, build=ATTACKS["daemon"], tail=DAEMON), fresh=True)
    assert lab.none_left()
    assert finished.code == 3
    assert finished.run["reason"]["code"] == "killed"
    assert finished.findings("processes_left_running")[0]["values"]["count"] in (1, 2)


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
