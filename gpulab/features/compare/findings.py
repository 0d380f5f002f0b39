"""What the reader of a comparison must know besides its figures."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding
from gpulab.core.units import plural


@finding(rank=Rank.INVALIDATING)
def environment_changed(*, what: list[str], before: list[str], after: list[str]) -> str:
    changed = f"the environment changed ({', '.join(what)})"
    if len(what) == 1:
        changed = f"the {what[0]} changed: {before[0]} -> {after[0]}"
    return f"{changed}; code effect not isolated"


@finding("{what:list} changed between A and B: code effect not isolated")
def environment_may_explain(*, what: list[str]) -> None: ...
@finding("this variant was not compared")
def variant_not_compared() -> None: ...
@finding(rank=Rank.EXPLAINING)
def separate_runs(*, speedup: float | None, time: float | None, in_turn: bool) -> str:
    parts = [f" of {speedup:.1%} in a speedup"] if speedup else []
    parts += [f" of {time:.0%} in a time"] if time else []
    least = f"runs were not interleaved: minimum detectable change{' or'.join(parts)}"
    if in_turn:
        return f"{least} with so few runs; make four or more of A and B, interleaved"
    return f"{least}, however many runs there are; interleave those of A and B"


@finding()
def on_one_side(*, scenario: str, device: str, side: str) -> str:
    where = f" on {device}" if device else ""
    return f"{scenario}{where} is only in {side}"


@finding("runs of {side} are not comparable with each other ({what:list})")
def mixed_side(*, side: str, what: list[str]) -> None: ...
@finding("only in {side}")
def variant_on_one_side(*, side: str) -> None: ...
@finding("{side}: off the CPU for up to {share:.0%} of the time (other work, or waits)")
def side_contended(*, side: str, share: float) -> None: ...
@finding("{side}'s run is incomplete: {outcome}")
def run_not_whole(*, side: str, outcome: str) -> None: ...
@finding("skipped {file}: {why}")
def file_skipped(*, file: str, why: str) -> None: ...
@finding(
    "different lessons, {first} and {second}: neither their code nor their times are compared",
    rank=Rank.INVALIDATING,
)
def different_lessons(*, first: str, second: str) -> None: ...
@finding("nothing to compare: A and B have no measured variant in common")
def nothing_in_common() -> None: ...
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
@finding("the output has another dtype: {what}")
def dtype_changed(*, what: str) -> None: ...
@finding("B prints something else than A, from line {line} on")
def prints_differ(*, line: int) -> None: ...
@finding("{side}: {message}", rank=Rank.INVALIDATING)
def side_failed(*, side: str, message: str) -> None: ...
@finding(
    "it ended after {pairs:plural pair/pairs} of processes, and an interval needs {needed}: "
    "give it more --time"
)
def too_few_pairs(*, pairs: int, needed: int) -> None: ...
