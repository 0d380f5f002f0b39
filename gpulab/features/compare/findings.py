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
@finding(
    "unpaired rows compare times of separate processes: their intervals are wider by how much runs "
    "differ",
    rank=Rank.EXPLAINING,
)
def unpaired_times() -> None: ...
@finding(
    "the runs of A and B were not made in turn: the intervals allow for what a machine differs by "
    "from one time to another",
    rank=Rank.EXPLAINING,
)
def not_in_turn() -> None: ...
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
