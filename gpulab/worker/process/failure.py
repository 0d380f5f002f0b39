"""What an exception of the scenario becomes: a kind, a message, the line in the scenario's file."""

from __future__ import annotations

import traceback
from pathlib import Path

import torch

from gpulab.protocol.events import VariantFailed
from gpulab.protocol.finding import finding
from gpulab.protocol.statuses import FailureKind, Stage
from gpulab.protocol.text import plain

_OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "bad_alloc",
    "status_alloc_failed",
)


def failure(error: BaseException, path: str, variant: str | None, stage: Stage) -> VariantFailed:
    """Describe the exception and let go of it: a traceback keeps every tensor of its frames alive."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == path and frame.lineno]
    if isinstance(error, SyntaxError) and error.filename == path and error.lineno:
        lines.append(error.lineno)
    first = next((index for index, frame in enumerate(frames) if frame.filename == path), len(frames))
    text = [*traceback.format_list(list(frames)[first:]), *traceback.format_exception_only(error)]
    event = VariantFailed(
        variant=variant,
        kind=_kind(error),
        stage=stage,
        cause=finding("exception", variant, message=plain(_message(error))),
        line=lines[-1] if lines else None,
        traceback=plain("".join(text)),
    )
    error.__traceback__ = None
    error.__context__ = error.__cause__ = None
    return event


def is_out_of_memory(error: BaseException) -> bool:
    # A CPU allocation that fails under a limit is a plain RuntimeError.
    text = str(error).lower()
    allocation = isinstance(error, RuntimeError) and any(phrase in text for phrase in _OUT_OF_MEMORY)
    return allocation or isinstance(error, (MemoryError, torch.OutOfMemoryError))


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"sys.exit({error.code!r})"
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({Path(error.filename or '?').name})"
    text = str(error)
    if is_out_of_memory(error):
        text = ". ".join(text.split(". ")[:2])  # the rest is advice about the allocator
    return f"{type(error).__name__}: {text}".strip(": ")


def _kind(error: BaseException) -> FailureKind:
    if isinstance(error, SystemExit):
        return FailureKind.EXIT
    return FailureKind.OUT_OF_MEMORY if is_out_of_memory(error) else FailureKind.ERROR
