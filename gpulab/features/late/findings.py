"""Findings of a program of several ranks: who is late, and who did not come."""

from __future__ import annotations

from gpulab.core.failures import signal_name
from gpulab.core.findings import Rank, finding
from gpulab.core.units import plural

_WHY = {
    "loader": "its DataLoader takes {excess} longer",
    "backward": "its backward takes {excess} longer",
    "gc": "Python's garbage collector takes {excess} more in it",
    "other": "what it does outside of its DataLoader and backward takes {excess} longer",
    "cpu stolen": "its thread waits {excess} longer for a CPU: other work runs there",
    "line": "one line takes {excess} longer",
    "unknown": "cause not determined",
}


@finding(rank=Rank.EXPLAINING)
def rank_is_late(
    *,
    rank: int,
    late_s: float,
    share: float,
    last: float,
    cause: str,
    excess_s: float,
    row: str = "",
    row_s: float = 0.0,
) -> str:
    excess = f"{excess_s * 1e3:.1f} ms"
    most = f"; most in its bill is {row}: {row_s:.2f} s more than the others" if row else ""
    return (
        f"rank {rank} is late by {late_s * 1e3:.1f} ms ({share:.0%}) of a step, and last in "
        f"{last:.0%} of them: {_WHY.get(cause, cause).format(excess=excess)}{most}"
    )


@finding(rank=Rank.EXPLAINING)
def collective_is_slow(*, collective: str, seconds: float, share: float) -> str:
    return (
        f"{collective} takes {seconds * 1e3:.1f} ms ({share:.0%}) of a step once all ranks have "
        "come: its transfer is slow"
    )


@finding(rank=Rank.EXPLAINING)
def rank_did_not_come(
    *, rank: int, collective: str, waiting_s: float, place: str, ended: bool = False
) -> str:
    stands = f"it stands at {place}" if place else "it does not answer"
    if ended:
        stands = "its process has ended"
    return f"rank {rank} has not come to {collective} for {waiting_s:.0f} s: {stands}"


@finding(rank=Rank.EXPLAINING)
def rank_ended(
    *,
    rank: int,
    code: int | None,
    signal: int | None,
    steps: int,
    exact: bool,
    came: bool,
    collective: str,
    place: str,
) -> str:
    how = "ended by itself, and others wait for it"
    if signal:
        how = f"was killed by signal {signal} ({signal_name(signal)})"
    elif code:
        how = f"ended first, with exit code {code}"
    after = f", after {'' if exact else 'about '}{plural(steps, 'step')}" if steps else ""
    who = "it" if came else "others"
    last = f"; the last collective that {who} came to is {collective}" if collective else ""
    stood = f"; it was sampled last at {place}" if place else ""
    return f"rank {rank} {how}{after}{last}{stood}"
