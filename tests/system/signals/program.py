"""`gpulab` with a worker that imports no torch: `python program.py ARGUMENTS`. Its scenario says
what it does.
"""

import os
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from worker_without_torch import COMMAND

from gpulab.__main__ import main
from gpulab.session import launch
from gpulab.session.session import Session
from gpulab.session.worker_process import READY

SCENARIO = """
    \"\"\"Waits: in one of its stages, until it is ended.\"\"\"
    import signal
    import subprocess
    import time
    from gpulab import Scenario, Work
    scenario = Scenario("waits", params={"wait": "MEASURE", "stubborn": False})

    @scenario.variant
    def one(lab, wait, stubborn): ...

    def serve(channel, job, buffer, position, forks):
        import os
        from gpulab.core import events as e
        from gpulab.core.machine import Device
        from gpulab.core.statuses import Stage
        wait = job.subject.params["wait"]
        if wait == "LOAD":
            time.sleep(600)
        channel.emit(e.WorkerReady(pid=os.getpid(), device=Device(kind="cpu", name="none"), environment={}))
        for stage in (Stage.MEASURE, Stage.PROFILE):
            position.move(stage, "one")
            channel.emit(e.StageStarted(stage=stage, variant="one"))
            if wait == stage.name:
                if job.subject.params["stubborn"]:
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                    subprocess.Popen(["sleep", "600"], start_new_session=True)  # ignores it as well
                time.sleep(600)
            if stage == Stage.MEASURE:
                channel.emit(SAMPLES)
        position.move(Stage.END)
        channel.emit(e.WorkerDone(sent=channel.sent))
        channel.flush()
"""
SAMPLES = """e.Samples(
                names=("one", "control"), complete=1, epoch=[0, 0], round=[0, 0], variant=[0, 1], times_s=[1e-3, 1e-3],
                cpu_s=[1e-3, 1e-3], faults=[0, 0], switches=[0, 0], ended=[time.monotonic()] * 2, steps=[1, 1])"""
SCENARIO = SCENARIO.replace("SAMPLES", SAMPLES)


def _set_up():
    launch.Session = partial(Session, command=COMMAND)
    READY.prepare = lambda threads: None
    exec(os.environ.get("SET_UP", ""))


if __name__ == "__main__":
    _set_up()
    sys.exit(main())
