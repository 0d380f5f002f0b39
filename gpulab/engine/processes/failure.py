"""What an exception of the scenario becomes: a kind, a message, the line in the scenario's file.

Their classes are the scenario's too: `str()` of one may raise, its attributes may be properties,
its metaclass may lie. So types are asked by `type()`, attributes are set by the descriptors of
BaseException, and text is cut before anything else is done with it.
"""

from __future__ import annotations

import difflib
import linecache
import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from traceback import FrameSummary, format_list
from types import TracebackType
from typing import Any

import torch

from gpulab.core.events import VariantFailed
from gpulab.core.failures import exception
from gpulab.core.findings import Finding
from gpulab.core.limits import MESSAGE_LENGTH, NAME_LENGTH, SOURCE_BYTES, TEXT_LENGTH
from gpulab.core.statuses import CheckKind, FailureKind, Stage
from gpulab.core.text import cut, one_line, plain
from gpulab.scenario import Work


class VariantError(Exception):
    """An exception with a finding instead of a message, and the kind of check that raised it, if it
    was one.
    """

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
    """The output is not the baseline's; `error` is the relative Frobenius error where there is
    one.
    """

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
_exact: Callable[[str], str] = str.__str__
"""Of a subclass, a plain string."""


def text_of(value: object, render: Callable[[Any], str] = str, most: int = _MOST) -> str:
    """Return the text that `str`, or another function, makes of a value, cut to a length."""
    try:
        return plain(cut(_exact(render(value)), most))
    except BaseException as error:
        return f"({render.__name__}() of this {type_name(value)} raises {type_name(error)})"


def short(value: object) -> str:
    """The value as it stands in the message of an error, on a line of its own."""
    return one_line(text_of(value, repr, NAME_LENGTH))


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message; its type where it has none."""
    return text_of(error).partition("\n")[0] or type_name(error)


def type_name(value: object) -> str:
    """The name of a value's type, whatever its metaclass says."""
    return plain(cut(type.__dict__["__name__"].__get__(type(value)), NAME_LENGTH))


def is_a(error: BaseException, *types: type[BaseException]) -> bool:
    """`isinstance`, by the type that the error has and not by the one that it shows."""
    return issubclass(type(error), types)


def attribute(error: BaseException, name: str, kind: type) -> Any:
    """An attribute of an error; None where it has no such one of exactly that type."""
    try:
        value = getattr(error, name)
    except BaseException:
        return None
    return value if type(value) is kind else None


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
    if is_a(error, SyntaxError):
        line = _line_of_syntax(error, path) or line
        text += cut(attribute(error, "text", str) or "", TEXT_LENGTH)
    notes = [
        text_of(note, most=TEXT_LENGTH) for note in (attribute(error, "__notes__", list) or [])[:3]
    ]
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
    if is_a(error, MemoryError, torch.OutOfMemoryError):
        return True
    return is_a(error, RuntimeError) and any(
        phrase in text_of(error).lower() for phrase in _OUT_OF_MEMORY
    )


def _frames(error: BaseException, path: str) -> tuple[list[FrameSummary], int | None]:
    """(the innermost frames from the scenario's first on, the scenario's innermost line)."""
    trace: TracebackType | None = BaseException.__dict__["__traceback__"].__get__(error)
    frames: deque[FrameSummary] = deque(maxlen=50)
    line: int | None = None
    while trace is not None:
        code = trace.tb_frame.f_code
        number = trace.tb_lineno
        name = str.__str__(code.co_filename)
        if name == path:
            line = number or line
        if line is not None:
            frames.append(_frame(name, number, str.__str__(code.co_name)))
        trace = trace.tb_next
    return list(frames), line


def _frame(file: str, number: int | None, function: str) -> FrameSummary:
    line = _source_line(file, number)
    return FrameSummary(
        cut(file, TEXT_LENGTH), number, cut(function, NAME_LENGTH), lookup_line=False, line=line
    )


def _source_line(file: str, number: int | None) -> str:
    """A line of a file that is one: code may claim to stand in a pipe, or in a device that never
    ends.
    """
    with suppress(OSError, ValueError):
        path = Path(file)
        if number and path.is_file() and 0 < path.stat().st_size <= SOURCE_BYTES:
            return cut(linecache.getline(file, number), 2 * NAME_LENGTH)
    return ""


def _line_of_syntax(error: BaseException, path: str) -> int | None:
    line = attribute(error, "lineno", int)
    is_here = attribute(error, "filename", str) == path
    return line if is_here and line is not None and 0 < line < (2**31) else None


def _message(error: BaseException) -> str:
    if is_a(error, SystemExit):
        return f"sys.exit({text_of(SystemExit.__dict__['code'].__get__(error), repr)})"
    if is_a(error, SyntaxError):
        file = Path(attribute(error, "filename", str) or "?").name
        return (
            f"{type_name(error)}: {text_of(attribute(error, 'msg', str) or '')} "
            f"({plain(cut(file, NAME_LENGTH))})"
        )
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
    if is_a(error, SystemExit):
        return FailureKind.EXIT
    return FailureKind.OUT_OF_MEMORY if is_out_of_memory(error) else FailureKind.ERROR
