"""What takes a variant out by the lab's own rules; each carries the finding that says why."""

from __future__ import annotations

from gpulab.protocol.finding import Finding


class VariantError(Exception):
    """An exception with a finding instead of a message."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.code)
        self.finding = finding


class RefusedError(VariantError):
    """The variant breaks the rules of a fair comparison."""


class SkippedError(VariantError):
    """The variant asked to be left out."""


class UncheckedError(VariantError):
    """The variant has nothing whose values could be compared."""


class WrongOutputError(VariantError):
    """The output is not the baseline's; `error` is the relative Frobenius error where there is one."""

    def __init__(self, finding: Finding, error: float | None = None) -> None:
        super().__init__(finding)
        self.error = error
