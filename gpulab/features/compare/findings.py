"""What the reader of a comparison must know besides its figures."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding


@finding(rank=Rank.INVALIDATING)
def environment_changed(*, what: list[str], before: list[str], after: list[str]) -> str:
    changed = f"the environment changed ({', '.join(what)})"
    if len(what) == 1:
        changed = f"the {what[0]} changed: {before[0]} -> {after[0]}"
    return f"{changed}; this is no comparison of the code alone"


@finding("{what:list} changed: nothing is shown of the code alone")
def environment_may_explain(*, what: list[str]) -> None: ...
@finding("there is no row of this variant")
def variant_not_compared() -> None: ...
@finding(rank=Rank.EXPLAINING)
def separate_runs(*, speedup: float | None, time: float | None, in_turn: bool) -> str:
    parts = [f" of {speedup:.1%} in a speedup"] if speedup else []
    parts += [f" of {time:.0%} in a time"] if time else []
    least = f"runs at separate times: a change{' or'.join(parts)} is the least that can be shown"
    if in_turn:
        return f"{least} by so few: make four or more of each, in turn"
    return f"{least}, however many there are, unless those of A and B are made in turn"


@finding()
def on_one_side(*, scenario: str, device: str, side: str) -> str:
    where = f" on {device}" if device else ""
    return f"{scenario}{where} is only in {side}"


@finding("{side}'s runs differ among themselves in: {what:list}")
def mixed_side(*, side: str, what: list[str]) -> None: ...
@finding("only in {side}")
def variant_on_one_side(*, side: str) -> None: ...
@finding("{side}: off the CPU for up to {share:.0%} of the time (other work, or waits)")
def side_contended(*, side: str, share: float) -> None: ...
@finding("{side}'s run is incomplete: {outcome}")
def run_not_whole(*, side: str, outcome: str) -> None: ...
@finding("skipped {file}: {why}")
def file_skipped(*, file: str, why: str) -> None: ...
@finding("nothing to compare: A and B have no measured variant in common")
def nothing_in_common() -> None: ...
