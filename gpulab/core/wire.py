"""Events and jobs as lines of JSON, and back: on the pipes between processes, and in run files.

An event stands on a line of its own, behind what says where it comes from. The worker numbers its
events from 0, so that none is lost or comes twice without notice.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any, Union

import msgspec

import gpulab
from gpulab.core.events import EVENTS, Event
from gpulab.core.jobs import WorkerJob
from gpulab.core.limits import LINE_BYTES
from gpulab.core.text import plain_json

UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What msgspec raises for text that is not JSON, or is not of the type asked for."""
_raw_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(dict[str, msgspec.Raw])


def encode(message: msgspec.Struct) -> bytes:
    """One line of JSON with its newline, in which nothing is invisible."""
    return plain_json(msgspec.json.encode(message)) + b"\n"


def decode(line: bytes) -> Event | None:
    """One event, or None where its type is not known here. ValueError where the line is no
    event.
    """
    decoder, tags = _known()
    try:
        return decoder.decode(line)
    except UNREADABLE as error:
        try:
            tag = msgspec.json.decode(_raw_decoder.decode(line)["type"])
        except (*UNREADABLE, KeyError):
            raise ValueError(f"not an event: {error}") from None
        if isinstance(tag, str) and tag not in tags:
            return None
        raise ValueError(f"a broken {tag}: {error}") from None


@cache
def _known() -> tuple[msgspec.json.Decoder[Event], frozenset[str]]:
    """Return the decoder of all events, of the core and of present features, and their tags."""
    kinds = (*EVENTS, *gpulab.events_of_features())
    decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Union[kinds])  # noqa: UP007
    return decoder, frozenset(str(kind.__struct_config__.tag) for kind in kinds)


_SUPERVISOR = b"supervisor"
_MOST_DIGITS = 18


def job_message(job: WorkerJob) -> bytes:
    """Return the message of a session to a worker's stdin: the job behind its length."""
    data = encode(job)
    return b"%d\n" % len(data) + data


def read_job(fd: int) -> WorkerJob | None:
    """Read the job, to its last byte and no further; None where the session is gone."""
    length = b""
    while not length.endswith(b"\n"):
        byte = os.read(fd, 1)
        if not byte:
            return None
        length += byte
    data = b""
    while len(data) < int(length):
        more = os.read(fd, int(length) - len(data))
        if not more:
            return None
        data += more
    job: WorkerJob = msgspec.json.decode(data, type=WorkerJob)
    return job


def numbered(number: int, event: Event) -> bytes:
    """An event of the worker, on a line of its own whatever was written to the pipe before."""
    return _line(b"%d" % number, event)


def of_supervisor(event: Event) -> bytes:
    """An event of the supervisor."""
    return _line(_SUPERVISOR, event)


def split(line: bytes) -> tuple[int | None, bytes] | None:
    """(number, event), the number None where it is the supervisor's; None where the line has
    neither.
    """
    origin, _, event = line.partition(b" ")
    if origin == _SUPERVISOR:
        return None, event
    return (int(origin), event) if origin.isdigit() and len(origin) <= _MOST_DIGITS else None


def _line(origin: bytes, event: Event) -> bytes:
    """ValueError where it is too long: the session would take its beginning for something that the
    scenario wrote to the pipe.
    """
    line = b"\n" + origin + b" " + encode(event)
    if len(line) > LINE_BYTES:
        raise ValueError(f"an event of {len(line)} bytes: the pipe takes {LINE_BYTES}")
    return line
