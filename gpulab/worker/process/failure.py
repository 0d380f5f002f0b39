"""What an exception of the scenario becomes: a kind, a message, the line in the scenario's file."""

from __future__ import annotations

import linecache
from collections import deque
from contextlib import suppress
from pathlib import Path
from traceback import FrameSummary, format_list
from types import TracebackType

import torch

from gpulab.limits import MESSAGE_LENGTH, NAME_LENGTH, SOURCE_BYTES, TEXT_LENGTH
from gpulab.protocol.events import VariantFailed
from gpulab.protocol.finding import finding
from gpulab.protocol.statuses import FailureKind, Stage
from gpulab.protocol.text import cut, plain
from gpulab.worker.process.exception_text import attribute, forget, is_a, text_of, type_name

_OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "bad_alloc",
    "status_alloc_failed",
)
_MOST_FRAMES, _MOST_NOTES = 50, 3
_LARGEST_LINE = 2**31


def failure(error: BaseException, path: str, variant: str | None, stage: Stage) -> VariantFailed:
    """Describe the exception and let go of it."""
    frames, line = _frames(error, path)
    message = _message(error)
    text = cut("".join(format_list(frames)), MESSAGE_LENGTH // 2)
    if is_a(error, SyntaxError):
        line = _line_of_syntax(error, path) or line
        text += cut(attribute(error, "text", str) or "", TEXT_LENGTH)
    notes = [text_of(note, most=TEXT_LENGTH) for note in (attribute(error, "__notes__", list) or [])[:_MOST_NOTES]]
    event = VariantFailed(
        variant=variant,
        kind=_kind(error),
        stage=stage,
        cause=finding("exception", variant, message=message),
        line=line,
        traceback=plain("\n".join([text + cut(message, MESSAGE_LENGTH // 4), *notes, ""])),
    )
    forget(error)
    return event


def is_out_of_memory(error: BaseException) -> bool:
    # A CPU allocation that fails under a limit is a plain RuntimeError.
    if is_a(error, MemoryError, torch.OutOfMemoryError):
        return True
    return is_a(error, RuntimeError) and any(phrase in text_of(error).lower() for phrase in _OUT_OF_MEMORY)


def _frames(error: BaseException, path: str) -> tuple[list[FrameSummary], int | None]:
    """(the innermost frames from the scenario's first on, the scenario's innermost line)."""
    trace: TracebackType | None = BaseException.__dict__["__traceback__"].__get__(error)
    frames: deque[FrameSummary] = deque(maxlen=_MOST_FRAMES)
    line: int | None = None
    while trace is not None:
        code, number = trace.tb_frame.f_code, trace.tb_lineno
        name = str.__str__(code.co_filename)
        if name == path:
            line = number or line
        if line is not None:
            frames.append(_frame(name, number, str.__str__(code.co_name)))
        trace = trace.tb_next
    return list(frames), line


def _frame(file: str, number: int | None, function: str) -> FrameSummary:
    line = _source_line(file, number)
    return FrameSummary(cut(file, TEXT_LENGTH), number, cut(function, NAME_LENGTH), lookup_line=False, line=line)


def _source_line(file: str, number: int | None) -> str:
    """A line of a file that is one: code may claim to stand in a pipe, or in a device that never ends."""
    with suppress(OSError, ValueError):
        path = Path(file)
        if number and path.is_file() and 0 < path.stat().st_size <= SOURCE_BYTES:
            return cut(linecache.getline(file, number), 2 * NAME_LENGTH)
    return ""


def _line_of_syntax(error: BaseException, path: str) -> int | None:
    line = attribute(error, "lineno", int)
    is_here = attribute(error, "filename", str) == path
    return line if is_here and line is not None and 0 < line < _LARGEST_LINE else None


def _message(error: BaseException) -> str:
    if is_a(error, SystemExit):
        return f"sys.exit({text_of(SystemExit.__dict__['code'].__get__(error), repr)})"
    if is_a(error, SyntaxError):
        file = Path(attribute(error, "filename", str) or "?").name
        return f"{type_name(error)}: {text_of(attribute(error, 'msg', str) or '')} ({plain(cut(file, NAME_LENGTH))})"
    text = text_of(error)
    if is_out_of_memory(error):
        text = ". ".join(text.split(". ")[:2])  # the rest is advice about the allocator
    return f"{type_name(error)}: {text}".strip(": ")


def _kind(error: BaseException) -> FailureKind:
    if is_a(error, SystemExit):
        return FailureKind.EXIT
    return FailureKind.OUT_OF_MEMORY if is_out_of_memory(error) else FailureKind.ERROR
