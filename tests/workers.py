"""Real workers that need not import torch: most of the time of a short run."""

import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from gpulab.session.worker_process import usual_environment

MARK = "GPULAB_TEST_MARK"
"""A variable of the environment of all that a lab starts."""
SERVER = str(Path(__file__).with_name("preloaded_worker.py"))


class PreloadedWorkers:
    """Workers of `preloaded_worker.py`, whose server starts with the first of them."""

    mark = uuid.uuid4().hex.encode()
    """In the environment of the server and of all that it forks."""

    def __init__(self):
        self._server = None
        self._folder = tempfile.TemporaryDirectory(prefix="gpulab-tests-")
        self._path = str(Path(self._folder.name) / "workers.sock")

    @property
    def command(self):
        if self._server is None or self._server.poll() is not None:
            Path(self._path).unlink(missing_ok=True)
            self._server = subprocess.Popen(
                [sys.executable, SERVER, self._path],
                env={**usual_environment(1), MARK: self.mark.decode()},  # of no lab
                stdin=subprocess.PIPE,  # which ends with this process, however it ends
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            assert self._server.stdout.readline() == b"ready\n"
        return (sys.executable, "-S", SERVER, self._path)

    @property
    def pid(self):
        return self._server and self._server.pid

    def close(self):
        if self._server is not None:
            self._server.kill()
            self._server.communicate()
        self._folder.cleanup()


WORKERS = PreloadedWorkers()
"""Of this process."""
