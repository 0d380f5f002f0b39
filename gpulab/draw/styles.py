"""Styles of closed lists, and the mark of a quick run."""

from __future__ import annotations

from gpulab.core.statuses import Conclusion, Status, Verdict

QUICK = "* a quick run: short, with wide intervals"
"""What the star of `with_star` means."""
STYLES: dict[Verdict | Status, str] = {
    Verdict.FASTER: "green",
    Verdict.SLOWER: "red",
    Verdict.SAME: "cyan",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.NO_DIFFERENCE: "dim",
    Verdict.UNCHECKED: "yellow",
    Verdict.WRONG: "bold red",
    Verdict.INVALID: "bold red",
    Status.PENDING: "dim",
    Status.OK: "",
    Status.FAILED: "bold red",
    Status.SKIPPED: "dim",
    Status.OUT_OF_MEMORY: "yellow",
}
"""Of verdicts and statuses."""
OUTCOME_STYLES: dict[Conclusion, str] = {
    Conclusion.MEASURED: "",
    Conclusion.FAILED: "bold red",
    Conclusion.WRONG: "bold red",
    Conclusion.SLOWER: "bold red",
    Conclusion.OUTLIERS: "bold red",
    Conclusion.INCONCLUSIVE: "yellow",
    Conclusion.INVALID: "bold red",
    Conclusion.INTERRUPTED: "bold red",
    Conclusion.UNDER_WAY: "dim",
    Conclusion.SKIPPED: "dim",
}
"""Of what a run came to."""


def with_star(text: str, *, quick: bool) -> str:
    """The last word of a row, with the star of a quick run."""
    return f"{text}*" if quick else text
