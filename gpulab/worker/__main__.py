"""`python -m gpulab.worker FD`: reads one job from stdin, sends events to the file descriptor FD.

With `--ready` it imports torch before there is a job.
"""

from __future__ import annotations

import sys
from typing import Any

# First of all: it reads how long the process has been there.
from gpulab.worker.process import startup  # noqa: F401

# isort: split
from gpulab.worker.process.channel import Channel
from gpulab.worker.supervisor import supervise


def main() -> None:
    supervise(Channel(int(sys.argv[1])), commands=0, serve=_serve)


def _serve(*arguments: Any) -> None:
    """In the forked worker."""
    from gpulab.worker.relay import serve

    serve(*arguments, ready="--ready" in sys.argv)


if __name__ == "__main__":
    main()
