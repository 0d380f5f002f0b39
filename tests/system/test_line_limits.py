"""A line of tests/gpu/verify.py that takes too long is cut off, with everything that it started."""

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil

sys.path.append(str(Path(__file__).parents[1] / "gpu"))
import verify

SLOW = """
import subprocess, sys, time
child = subprocess.Popen(["sleep", "100"])
open(sys.argv[1], "w").write(str(child.pid))
time.sleep(100)
"""


def test_a_line_is_cut_off_with_all_that_it_started(tmp_path, monkeypatch):
    pid_file, popen = tmp_path / "pid", verify.subprocess.Popen

    def start(command, **options):
        return popen([sys.executable, "-c", SLOW, str(pid_file)], **options)

    monkeypatch.setattr(verify.subprocess, "Popen", start)
    options = SimpleNamespace(folder=tmp_path, device="cpu")
    verify.within_limit(verify.LINES["doctor"], options, 2.0)
    (row,) = verify.rows_of(tmp_path / "rows.jsonl")
    assert (row.title, row.measured, row.judgement) == ("doctor", "cut off after 2 s", "NO")
    pid = int(pid_file.read_text())
    deadline = time.monotonic() + 20.0  # it was killed just now
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.01)
