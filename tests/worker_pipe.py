"""The pipe of a worker that plays a script: it is the worker and its supervisor in one."""

import os
import sys

from gpulab.core.events import WorkerDone, WorkerExited
from gpulab.core.statuses import Stage
from gpulab.core.wire import numbered, of_supervisor, read_job


class WorkerPipe:
    """Reads the job from stdin; its events go to the descriptor that the command line names."""

    def __init__(self):
        self.fd, self.sent = int(sys.argv[1]), 0
        self.job = read_job(0)

    def emit(self, event):
        os.write(self.fd, numbered(self.sent, event))
        self.sent += 1

    def end(self):
        """The worker's last event, and its supervisor's."""
        self.emit(WorkerDone(sent=self.sent))
        self.exited()

    def exited(self, code=0, stage=Stage.END):
        os.write(
            self.fd,
            of_supervisor(WorkerExited(code=code, signal=None, stage=stage, variant=None)),
        )
