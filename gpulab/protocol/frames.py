"""How a job goes to a worker, and how events come back: numbered by the worker, signed by its supervisor.

An event stands on a line of its own, behind what says where it comes from. The worker numbers its events from 0. A
scenario shares its process and can write to the pipe as well, but whatever number it takes is the number of the
worker's own next event, or leaves a gap before it. The supervisor has a secret instead, which it reads after the fork.
"""

from __future__ import annotations

import os
import secrets

import msgspec

from gpulab.limits import LINE_BYTES
from gpulab.protocol.event import Event
from gpulab.protocol.jobs import AnyJob
from gpulab.protocol.wire import decode, encode

_SECRET_LENGTH = 32
_MOST_DIGITS = 18


def new_secret() -> bytes:
    return secrets.token_hex(_SECRET_LENGTH // 2).encode()


def job_message(job: AnyJob, secret: bytes) -> bytes:
    """What a session writes to a worker's stdin: the length of the job, the job, and the supervisor's secret."""
    data = encode(job)
    return b"%d\n" % len(data) + data + secret


def read_job(fd: int) -> AnyJob | None:
    """The job, read to its last byte and no further; None where the session is gone."""
    length = b""
    while not length.endswith(b"\n"):
        byte = os.read(fd, 1)
        if not byte:
            return None
        length += byte
    data = _read(fd, int(length))
    return None if data is None else msgspec.json.decode(data, type=AnyJob)


def read_secret(fd: int) -> bytes | None:
    """The secret behind the job, to be read where no scenario can; None where the session is gone."""
    return _read(fd, _SECRET_LENGTH)


def numbered(number: int, event: Event) -> bytes:
    """An event of the worker, on a line of its own whatever was written to the pipe before."""
    return _line(b"%d" % number, event)


def signed(secret: bytes, event: Event) -> bytes:
    """An event of the supervisor."""
    return _line(secret, event)


def split(line: bytes, secret: bytes) -> tuple[int | None, bytes] | None:
    """(number, event), the number None where it is the supervisor's; None where the line has neither."""
    origin, _, event = line.partition(b" ")
    if secrets.compare_digest(origin, secret):
        return None, event
    return (int(origin), event) if origin.isdigit() and len(origin) <= _MOST_DIGITS else None


def _line(origin: bytes, event: Event) -> bytes:
    """ValueError where the session would refuse it: there it would look as if the scenario had written to the pipe."""
    data = encode(event)
    decode(data)
    line = b"\n" + origin + b" " + data
    if len(line) > LINE_BYTES:
        raise ValueError(f"an event of {len(line)} bytes: the pipe takes {LINE_BYTES}")
    return line


def _read(fd: int, count: int) -> bytes | None:
    data = b""
    while len(data) < count:
        more = os.read(fd, count - len(data))
        if not more:
            return None
        data += more
    return data
