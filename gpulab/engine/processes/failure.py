"""What an exception of the scenario becomes: a kind, a message, the line in the scenario's file.

Their classes are the scenario's too: `str()` of one may raise, and it may be frozen. Text is cut
before anything else is done with it.
"""

from __future__ import annotations

import difflib
import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from traceback import FrameSummary, format_list, walk_tb
from typing import Any

import torch

from gpulab.core.events import VariantFailed
from gpulab.core.failures import exception
from gpulab.core.findings import Finding
from gpulab.core.limits import MESSAGE_LENGTH, NAME_LENGTH, TEXT_LENGTH
from gpulab.core.statuses import CheckKind, FailureKind, Stage
from gpulab.core.text import cut, one_line, plain
from gpulab.scenario import Work


class VariantError(Exception):
    """An exception with a finding instead of a message, and the check that raised it, if any."""

    def __init__(self, finding: Finding, *, check: CheckKind | None = None) -> None:
        super().__init__(finding.code)
        self.finding = finding
        self.check = check


class RefusedError(VariantError):
    """The variant breaks the rules of a fair comparison."""


class SkippedError(VariantError):
    """The variant asked to be left out."""


class UncheckedError(VariantError):
    """The variant has nothing whose values could be compared."""


class WrongOutputError(VariantError):
    """The output is not the baseline's; `error` is the relative Frobenius error, if any."""

    def __init__(
        self, finding: Finding, error: float | None = None, *, check: CheckKind | None = None
    ) -> None:
        super().__init__(finding, check=check)
        self.error = error


@contextmanager
def checking(kind: CheckKind) -> Iterator[None]:
    """Have the error raised inside name this kind of check as its finder, if it names none."""
    try:
        yield
    except VariantError as error:
        error.check = error.check or kind
        raise


_MOST = MESSAGE_LENGTH // 2
"""Characters of a message: what is written around it must find room in the same event."""


def text_of(value: object, render: Callable[[Any], str] = str, most: int = _MOST) -> str:
    """Return the text that `str`, or another function, makes of a value, cut to a length."""
    try:
        return plain(cut(str.__str__(render(value)), most))
    except BaseException as error:
        return f"({render.__name__}() of this {type_name(value)} raises {type_name(error)})"


def short(value: object) -> str:
    """The value as it stands in the message of an error, on a line of its own."""
    return one_line(text_of(value, repr, NAME_LENGTH))


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message; its type where it has none."""
    return text_of(error).partition("\n")[0] or type_name(error)


def type_name(value: object) -> str:
    return plain(cut(type(value).__name__, NAME_LENGTH))


def forget(error: BaseException) -> None:
    """Let go of what an error holds: the frames of its traceback keep every tensor alive."""
    for name in ("__traceback__", "__context__", "__cause__"):
        BaseException.__dict__[name].__set__(error, None)


_OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "bad_alloc",
    "status_alloc_failed",
)


def failure(error: BaseException, path: str, variant: str | None, stage: Stage) -> VariantFailed:
    """Describe the exception and let go of it."""
    frames, line = _frames(error, path)
    message = _message(error)
    text = cut("".join(format_list(frames)), MESSAGE_LENGTH // 2)
    if isinstance(error, SyntaxError):
        if error.filename == path and isinstance(error.lineno, int):
            line = error.lineno
        text += cut(error.text or "", TEXT_LENGTH)
    notes = [text_of(note, most=TEXT_LENGTH) for note in getattr(error, "__notes__", [])[:3]]
    event = VariantFailed(
        variant=variant,
        kind=_kind(error),
        stage=stage,
        cause=exception(variant, message=message),
        line=line,
        traceback=plain("\n".join([text + cut(message, MESSAGE_LENGTH // 4), *notes, ""])),
    )
    forget(error)
    return event


def is_out_of_memory(error: BaseException) -> bool:
    # A CPU allocation that fails under a limit is a plain RuntimeError.
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    said = text_of(error).lower()
    return isinstance(error, RuntimeError) and any(phrase in said for phrase in _OUT_OF_MEMORY)


def _frames(error: BaseException, path: str) -> tuple[list[FrameSummary], int | None]:
    """(the innermost frames from the scenario's first on, the scenario's innermost line)."""
    frames: deque[FrameSummary] = deque(maxlen=50)
    line: int | None = None
    for frame, number in walk_tb(error.__traceback__):
        code = frame.f_code
        if code.co_filename == path:
            line = number or line
        if line is not None:
            file = cut(code.co_filename, TEXT_LENGTH)
            frames.append(FrameSummary(file, number, cut(code.co_name, NAME_LENGTH)))
    return list(frames), line


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"sys.exit({text_of(error.code, repr)})"
    if isinstance(error, SyntaxError):
        file = plain(cut(Path(error.filename or "?").name, NAME_LENGTH))
        return f"{type_name(error)}: {text_of(error.msg or '')} ({file})"
    text = text_of(error)
    if is_out_of_memory(error):
        text = ". ".join(text.split(". ")[:2])  # the rest is advice about the allocator
    text = f"{type_name(error)}: {text}".strip(": ")
    return f"{text}: {hint}" if (hint := _hint(text)) else text


_HINTS = {
    "attempted relative import with no known parent package": (
        "its folder is no package: import without the dot, or put an __init__.py there"
    ),
    **dict.fromkeys(
        (
            "Torch not compiled with CUDA enabled",
            "Found no NVIDIA driver on your system",
            "No CUDA GPUs are available",
        ),
        "a scenario builds on lab.device, a plain function where its arguments are",
    ),
}
"""What to write instead, by what an exception says."""
_WORK = re.compile(r"TypeError: Work\.__init__\(\) got an unexpected keyword argument '(\w+)'")


def _hint(message: str) -> str:
    if (match := _WORK.match(message)) is not None:
        names = [each.name for each in fields(Work)]
        close = difflib.get_close_matches(match[1], names, 1, 0.7)
        return f"did you mean {close[0]}?" if close else f"it takes {', '.join(names)}"
    return next((hint for phrase, hint in _HINTS.items() if phrase in message), "")


def _kind(error: BaseException) -> FailureKind:
    if isinstance(error, SystemExit):
        return FailureKind.EXIT
    return FailureKind.OUT_OF_MEMORY if is_out_of_memory(error) else FailureKind.ERROR
