"""`python -m gpulab.worker FD`: reads one job from stdin, sends events to the file descriptor FD."""

from __future__ import annotations

import os
import sys
from typing import Any

import msgspec

from gpulab.protocol.jobs import AnyJob
from gpulab.worker.process.channel import Channel
from gpulab.worker.supervisor import supervise


def main() -> None:
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)  # one at a time: what follows the line is a command, and the supervisor's
        if not byte:
            return
        line += byte
    supervise(Channel(int(sys.argv[1])), msgspec.json.decode(line, type=AnyJob), commands=0, serve=_serve)


def _serve(*arguments: Any) -> None:
    """In the forked worker: torch is imported here, so that the supervisor stays small."""
    from gpulab.worker.runner import serve

    serve(*arguments)


if __name__ == "__main__":
    main()
