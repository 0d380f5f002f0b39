"""The events of a Chrome trace that count, read from its text one after another: whatever a file
unpacks to, no more than those is held.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from gpulab.core.limits import (
    NAME_LENGTH,
    TRACE_BYTES,
    TRACE_EVENTS,
    TRACE_TEXTS_LENGTH,
    TRACE_VALUE_LENGTH,
)
from gpulab.core.payloads import GROUP
from gpulab.core.text import cut, one_line
from gpulab.core.units import plural
from gpulab.traces.trace import INPUTS, is_relevant

_DECODER = json.JSONDecoder(strict=False)  # some exporters write control characters
_BLANKS = re.compile(r"[ \t\r\n]*")
_WORDS = ("true", "false", "null", "-")
_MOST_KINDS = 3


def trace_events(file: TextIO) -> Iterator[dict[str, Any]]:
    """Each with no more than is read of it. ValueError, RecursionError where it is no trace, or has
    more than the limits; OSError where it is larger.
    """
    known: dict[str, dict[str, Any]] = {}
    length = 0
    kinds: set[str] = set()
    text = _Text(file)
    for raw in _entries(text):
        if not is_relevant(raw):
            kinds.add(str(raw.get("cat", "")) if isinstance(raw, dict) else "")
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
            if GROUP in arguments:
                event["args"][GROUP] = str(arguments[GROUP])[:NAME_LENGTH]
        yield event
    if not known:
        raise ValueError(_why_none(text, kinds))


def _why_none(text: _Text, kinds: set[str]) -> str:
    """Why no event counts."""
    if not text.events:
        return "no operations in it: its list of traceEvents is empty"
    named = sorted(kinds - {""})[:_MOST_KINDS]
    words = f"none of {plural(text.events, 'event')} is of torch.profiler"
    if named:
        words += f"; their categories: {', '.join(cut(name, NAME_LENGTH) for name in named)}"
    return words


def raw_events(file: TextIO) -> Iterator[object]:
    """Yield all that the trace lists. ValueError, RecursionError, OSError as above."""
    yield from _entries(_Text(file))


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
            text.events += 1
            if text.events > TRACE_EVENTS:
                raise ValueError(f"more than {TRACE_EVENTS} events: record fewer steps")
    if not lists:
        raise ValueError("no list of traceEvents, which torch.profiler writes")
    if mark := text.next():
        raise ValueError(f"{mark} after the end of the trace, at {text.place()}")


class _Text:
    """JSON as far as it was read and not yet taken: at least one whole value of those that are
    short enough.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._text = ""
        self._at = 0
        self._length = 0
        self._before = 0
        """Bytes before the text."""
        self._has_more = True
        self.events = 0

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
            self._before += _size(self._text[: self._at])
            self._text = self._text[self._at :] + more
            self._at = 0

    def place(self, at: int | None = None) -> str:
        """Describe where the stream is, or where a character of the text is."""
        text = self._text[: self._at if at is None else at]
        return f"byte {self._before + _size(text)}"

    def take(self, marks: str) -> str:
        """The next mark, which is one of these. ValueError."""
        mark = self.next()
        if not mark:
            raise self._cut_off() if self._length else ValueError("the file is empty")
        if mark not in marks:
            if marks == "{":
                raise ValueError(f"no list of traceEvents: it begins with {mark}")
            raise ValueError(f"no JSON at {self.place()}: {mark} in place of {marks}")
        self._at += 1
        return mark

    def value(self) -> Any:
        """ValueError, RecursionError."""
        self.next()
        try:
            value, self._at = _DECODER.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            raise self._no_value(error) from None
        return value

    def _no_value(self, error: json.JSONDecodeError) -> ValueError:
        if self._has_more:
            longest = f"more than {TRACE_VALUE_LENGTH} characters"
            return ValueError(f"no JSON at {self.place(error.pos)}, or {longest} of one event")
        rest = self._text[error.pos :].strip()
        if error.msg.startswith("Unterminated") or any(word.startswith(rest) for word in _WORDS):
            return self._cut_off()
        return ValueError(f"no JSON at {self.place(error.pos)}: {error.msg.removesuffix(' at')}")

    def _cut_off(self) -> ValueError:
        end = self.place(len(self._text))
        whole = plural(self.events, "whole event")
        return ValueError(f"cut off at {end}, after {whole}: it was not written to its end")

    def items(self, opening: str, closing: str) -> Iterator[None]:
        """At each item of a list or an object, which is taken meanwhile. ValueError."""
        self.take(opening)
        if self.next() == closing:
            self.take(closing)
            return
        yield
        while self.take(f",{closing}") == ",":
            yield


def _size(text: str) -> int:
    """Bytes of it in UTF-8."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def whole(entries: Iterable[object]) -> tuple[list[object], str]:
    """Return the events that are whole, and what ended them early. ValueError where none is."""
    events = []
    try:
        for event in entries:
            events.append(event)
    except ValueError as error:
        if not events:
            raise
        return events, f"read in part: {one_line(str(error))}"
    return events, ""
