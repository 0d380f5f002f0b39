"""`gpulab` over workers that play a script, as a program of its own.

It imports nothing of the tests: pytest would take twice as long as the rest.
"""

import sys
from functools import partial
from pathlib import Path

from gpulab.cli import main
from gpulab.session import drive, launch, session

WORKER = (sys.executable, str(Path(__file__).with_name("scripted_worker.py")))

if __name__ == "__main__":
    launch.Session = partial(session.Session, command=WORKER)
    # a run of theirs ends within a usual tick, and its progress would not be seen
    drive.TICK_S = 0.001
    sys.exit(main())
