"""Processes of the lab and those that forked them."""

import json
import subprocess
import sys

DISMISSED = """
import json, os, time
import psutil
from gpulab.engine.measure.handover import Progress
from gpulab.engine.processes.children import Child
from gpulab.engine.processes.forking import Forks
from gpulab.engine.processes.forking import adopt_orphans

def become(number, pipes):
    for _ in range(2):
        if forks.fork() == 0:
            time.sleep(60)
    pipes.ready()
    time.sleep(60)

adopt_orphans()
forks = Forks([])
child = Child(forks, 0, Progress, become)
assert child.is_ready()
forked = len(psutil.Process().children(recursive=True))
child.dismiss()
print(json.dumps([forked, len(psutil.Process().children(recursive=True))]))
"""


def test_what_a_dismissed_child_forked_is_gone_with_it():
    """A supervisor that finds it takes it for something that the scenario left running."""
    done = subprocess.run(
        [sys.executable, "-c", DISMISSED], check=True, capture_output=True, timeout=60
    )
    assert json.loads(done.stdout) == [3, 0]
