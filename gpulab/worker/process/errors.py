"""What takes a variant out by the lab's own rules; each carries the finding that says why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpulab.protocol.finding import Finding
from gpulab.protocol.statuses import CheckKind


class VariantError(Exception):
    """An exception with a finding instead of a message, and the kind of check that raised it, if it was one."""

    def __init__(self, finding: Finding, *, check: CheckKind | None = None) -> None:
        super().__init__(finding.code)
        self.finding, self.check = finding, check


class RefusedError(VariantError):
    """The variant breaks the rules of a fair comparison."""


class SkippedError(VariantError):
    """The variant asked to be left out."""


class UncheckedError(VariantError):
    """The variant has nothing whose values could be compared."""


class WrongOutputError(VariantError):
    """The output is not the baseline's; `error` is the relative Frobenius error where there is one."""

    def __init__(self, finding: Finding, error: float | None = None, *, check: CheckKind | None = None) -> None:
        super().__init__(finding, check=check)
        self.error = error


@contextmanager
def checking(kind: CheckKind) -> Iterator[None]:
    """What is raised inside was found by this kind of check, if by no other."""
    try:
        yield
    except VariantError as error:
        error.check = error.check or kind
        raise
