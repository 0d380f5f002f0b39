"""`python -m gpulab.worker FD`: reads one request from stdin, sends events to the file descriptor FD."""

import os
import sys

import msgspec

from gpulab.model.request import RunRequest
from gpulab.worker.channel import Channel
from gpulab.worker.warden import supervise


def main() -> None:
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)  # one at a time: what follows the line is a command, and the warden's
        if not byte:
            return
        line += byte
    supervise(Channel(int(sys.argv[1])), msgspec.json.decode(line, type=RunRequest), commands=0)


if __name__ == "__main__":
    main()
