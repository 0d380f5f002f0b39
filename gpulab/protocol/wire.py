"""Events as lines of JSON, and back: on the pipes, and in run files."""

from __future__ import annotations

from typing import Any

import msgspec

from gpulab.protocol.events import AnyEvent
from gpulab.protocol.text import plain_json

TAGS: frozenset[str] = frozenset(event_type.__struct_config__.tag for event_type in AnyEvent.__args__)
UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What msgspec raises for text that is not JSON, or is not of the type asked for."""
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_raw_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(dict[str, msgspec.Raw])


def encode(message: msgspec.Struct) -> bytes:
    """One line of JSON with its newline, in which nothing is invisible."""
    return plain_json(msgspec.json.encode(message)) + b"\n"


def decode(line: bytes) -> AnyEvent | None:
    """One event, or None where its type is not known here. ValueError where the line is no event."""
    try:
        return _decoder.decode(line)
    except UNREADABLE as error:
        try:
            tag = msgspec.json.decode(_raw_decoder.decode(line)["type"])
        except (*UNREADABLE, KeyError):
            raise ValueError(f"not an event: {error}") from None
        if isinstance(tag, str) and tag not in TAGS:
            return None
        raise ValueError(f"a broken {tag}: {error}") from None
