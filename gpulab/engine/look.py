"""`python -m gpulab.engine.look MODULE FD`: reads one request from stdin, has `look` of a feature's
worker answer it, and writes the answer to the file descriptor FD.

The worker runs a user's step: as beside a whole job, a parent that imports nothing heavy outlives
it, ends whatever it leaves behind, and ends it where the session is gone.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from importlib import import_module
from typing import Any

import msgspec

from gpulab.core.wire import read_with_length
from gpulab.proc.fork import become_subreaper, fork
from gpulab.proc.pipes import to_high_number, write_all
from gpulab.proc.tree import exit_like, kill_group, kill_orphans, serve_and_exit


def main() -> None:
    module, answers = sys.argv[1], to_high_number(int(sys.argv[2]))
    request = read_with_length(0)
    if request is None:
        return
    become_subreaper()
    pid = fork()
    if pid == 0:
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        serve_and_exit(lambda: write_all(answers, _answer(module, request)))
    os.close(answers)
    exit_fd = os.pidfd_open(pid)
    select.select([exit_fd, 0], [], [])  # stdin ends with the session
    kill_group(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    kill_orphans()
    exit_like(status)


def _answer(module: str, request: bytes) -> bytes:
    answer: Any
    try:
        answer = import_module(module).look(request)
    except (Exception, SystemExit) as error:
        from gpulab.engine.processes.failure import first_line

        answer = {"problem": f"{type(error).__name__}: {first_line(error)}"}
    return msgspec.json.encode(answer)


if __name__ == "__main__":
    main()
