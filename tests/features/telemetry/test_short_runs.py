"""A run that ends before the second tick has the readings of its host all the same."""

import os
import subprocess
import sys

from sampling import Sampling

from gpulab.core.machine import Device
from gpulab.features.telemetry.events import Telemetry, TelemetryStarted

BUSY = """
import os, sys, time
if os.fork() == 0:
    print("ready", flush=True)
    sys.stdin.readline()
    while time.process_time() < 0.15:
        pass
    os._exit(0)
os.wait()
"""
"""What computes is a child, which is gone when the last reading is taken."""


def test_the_cpu_time_of_a_short_process_is_whole(lab, monkeypatch):
    monkeypatch.chdir(lab.folder)
    command = [sys.executable, "-c", BUSY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        sampling = Sampling("on", Device(kind="cpu", name="cpu"), process.pid)
        sampling.wait_for(TelemetryStarted)
        process.stdin.write(b"go\n")
        process.stdin.flush()
        # its end, as long as nobody has waited for it
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        sampling.stop()
    readings = [event for event in sampling.events if isinstance(event, Telemetry)]
    ends = [reading.since for reading in readings[1:]] + [readings[-1].t]
    cpu_s = sum(
        reading.values["worker_cpu"] / 100 * (end - reading.since)
        for reading, end in zip(readings, ends, strict=True)
    )
    assert 0.08 <= cpu_s <= 0.2  # a last stretch under 50 ms has no reading
    assert "rss" in readings[0].values
