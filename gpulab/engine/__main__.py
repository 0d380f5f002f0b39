"""`python -m gpulab.engine FD`: reads one job from stdin, sends events to the file descriptor FD.

With `--ready` it imports torch before there is a job.
"""

from __future__ import annotations

import sys
from typing import Any

# First of all: it reads how long the process has been there.
from gpulab.engine.processes import startup  # noqa: F401

# isort: split
from gpulab.engine.processes.channel import Channel
from gpulab.engine.processes.supervisor import supervise


def main() -> None:
    supervise(Channel(int(sys.argv[1])), commands=0, serve=_serve)


def _serve(*arguments: Any) -> None:
    """In the forked worker."""
    from gpulab.engine.processes.scheduler import serve

    serve(*arguments, ready="--ready" in sys.argv)


if __name__ == "__main__":
    main()
