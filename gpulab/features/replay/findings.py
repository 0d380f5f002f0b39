"""Findings of a recording that is read again."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding


@finding(
    "lesson text and claim are today's, code and figures those of the recording",
    rank=Rank.EXPLAINING,
)
def text_of_today() -> None: ...
