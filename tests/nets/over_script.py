"""`gpulab ARGUMENTS` on one machine, over workers that play a script at once; `worker FD` is such a
worker; `notebook FILE.py` runs a file, whose runs are of such workers.
"""

import runpy
import sys
import time
from functools import partial
from pathlib import Path

from same_everywhere import TESTS, one_machine

WORKER = (sys.executable, __file__, "worker")


def work():
    """A step takes at most a millisecond, and nobody waits for it."""
    sys.path.insert(0, str(TESTS))
    from scripted_worker import Script

    del sys.argv[1]
    time.sleep = lambda seconds: None
    script = Script()
    params = getattr(getattr(script.job, "subject", None), "params", {})
    if "n" in params:
        params["n"] = int(params["n"]) % 1000 or 100
    script.play()


def main(words):
    from gpulab.cli import main as gpulab
    from gpulab.session import launch, session

    launch.Session = partial(session.Session, command=WORKER)
    one_machine()
    if words[:1] != ["notebook"]:
        return gpulab(words)
    sys.path.insert(0, str(Path.cwd()))
    runpy.run_path(words[1])
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        work()
    else:
        sys.exit(main(sys.argv[1:]))
