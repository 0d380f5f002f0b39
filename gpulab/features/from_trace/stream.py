"""The events of a Chrome trace that count, read from its text one after another: whatever a file
unpacks to, no more than those is held.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator
from typing import Any, TextIO

from gpulab.core.limits import TRACE_BYTES, TRACE_EVENTS, TRACE_TEXTS_LENGTH, TRACE_VALUE_LENGTH
from gpulab.features.goodput.trace import is_relevant

INPUTS = ("Input Dims", "Input Strides", "Input type", "Concrete Inputs")
_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\r\n]*")


def trace_events(file: TextIO) -> Iterator[dict[str, Any]]:
    """Each with no more than is read of it. ValueError, RecursionError where it is no trace, or has
    more than the limits; OSError where it is larger.
    """
    known: dict[str, dict[str, Any]] = {}
    length = 0
    for count, raw in enumerate(_entries(_Text(file)), 1):
        if count > TRACE_EVENTS:
            raise ValueError(f"more than {TRACE_EVENTS} events: record fewer steps")
        if not is_relevant(raw):
            continue
        arguments = raw.get("args")
        if not isinstance(arguments, dict):
            arguments = {}
        inputs = {name: arguments[name] for name in INPUTS if name in arguments}
        shared = {name: raw.get(name) for name in ("ph", "cat", "name", "pid", "tid")}
        key = json.dumps([shared, inputs])
        if key not in known:
            length += len(key)
            if length > TRACE_TEXTS_LENGTH:
                raise ValueError(f"more than {TRACE_TEXTS_LENGTH} characters of names and shapes")
            known[key] = {**shared, "args": inputs}
        event = {**known[key], "ts": raw.get("ts"), "dur": raw.get("dur")}
        correlation = arguments.get("correlation")
        if isinstance(correlation, int):
            event["args"] = {"correlation": correlation}
        yield event


def _entries(text: _Text) -> Iterator[object]:
    lists = 0
    for _ in text.items("{", "}"):
        name = text.value()
        text.take(":")
        if name != "traceEvents" or text.next() != "[":
            text.value()
            continue
        lists += 1
        for _ in text.items("[", "]"):
            yield text.value()
    if text.next() or not lists:
        raise ValueError("not a Chrome trace: no list of traceEvents")


class _Text:
    """JSON as far as it was read and not yet taken: at least one whole value of those that are
    short enough.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._text = ""
        self._at = 0
        self._length = 0
        self._has_more = True

    def next(self) -> str:
        """The mark that comes after blanks; empty at the end."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            self._at = blanks.end() if blanks else self._at
            if not self._has_more or len(self._text) - self._at >= TRACE_VALUE_LENGTH:
                return self._text[self._at : self._at + 1]
            more = self._file.read(TRACE_VALUE_LENGTH)
            self._has_more = bool(more)
            self._length += len(more)
            if self._length > TRACE_BYTES:
                raise OSError(errno.EFBIG, f"larger than {TRACE_BYTES} bytes")
            self._text = self._text[self._at :] + more
            self._at = 0

    def take(self, marks: str) -> str:
        """The next mark, which is one of these. ValueError."""
        mark = self.next()
        if not mark or mark not in marks:
            raise ValueError(f"no list of traceEvents: {mark or 'its end'} in place of {marks}")
        self._at += 1
        return mark

    def value(self) -> Any:
        """ValueError, RecursionError."""
        self.next()
        try:
            value, self._at = _DECODER.raw_decode(self._text, self._at)
        except ValueError as error:
            reason = getattr(error, "msg", str(error))
            if self._has_more:
                reason += f", or more than {TRACE_VALUE_LENGTH} characters of one event"
            raise ValueError(reason) from None
        return value

    def items(self, opening: str, closing: str) -> Iterator[None]:
        """At each item of a list or an object, which is taken meanwhile. ValueError."""
        self.take(opening)
        if self.next() == closing:
            self.take(closing)
            return
        yield
        while self.take(f",{closing}") == ",":
            yield
