"""Processes of the lab and those that forked them."""

import json
import subprocess
import sys

KILLED = """
import json, os, time
import psutil
from gpulab.engine.processes.child import Child, kill_all
from gpulab.proc.fork import become_subreaper
from gpulab.proc.tree import ForkGuard

def serve(pipe):
    for _ in range(2):
        if forks.fork() == 0:
            time.sleep(60)
    pipe.send("ready")
    time.sleep(60)

become_subreaper()
forks = ForkGuard(lambda: None)
child = Child(forks, serve)
assert child.wait_until_ready()
forked = len(psutil.Process().children(recursive=True))
kill_all([child])
print(json.dumps([forked, len(psutil.Process().children(recursive=True))]))
"""


def test_what_a_killed_child_forked_is_gone_with_it():
    """A supervisor that finds it takes it for something that the scenario left running."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED], check=True, capture_output=True, timeout=60
    )
    assert json.loads(done.stdout) == [3, 0]
