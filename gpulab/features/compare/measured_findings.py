"""What the reader of a comparison must know whose sides were measured anew."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding
from gpulab.core.units import plural


@finding(
    "both sides imported {modules:list} from {place}: what changed in it between them was not "
    "measured",
    rank=Rank.INVALIDATING,
)
def imported_from_one_place(*, modules: list[str], place: str) -> None: ...
@finding()
def nothing_changed(*, files: int) -> str:
    return (
        f"nothing that the step imports or reads changed ({plural(files, 'file')}, equal byte for "
        "byte): nothing was measured"
    )


@finding(
    "{files:list} changed between the sides; both were measured with the packages of this "
    "environment: to compare environments write python:ENV/bin/python twice",
)
def dependencies_changed(*, files: list[str]) -> None: ...
@finding("the outputs of the two sides differ: {how}", rank=Rank.INVALIDATING)
def outputs_differ(*, how: str) -> None: ...
@finding("outputs were not compared: {why}")
def outputs_not_compared(*, why: str) -> None: ...
@finding("{side}: {message}", rank=Rank.INVALIDATING)
def side_failed(*, side: str, message: str) -> None: ...
@finding(
    "the time limit ended it after {pairs:plural pair/pairs} of processes: an interval needs "
    "{needed}; give it more --time"
)
def too_few_pairs(*, pairs: int, needed: int) -> None: ...
