"""How a run spreads over processes, builds and rounds: pure arithmetic on what a build and a round
cost.
"""

from __future__ import annotations

from math import ceil

import msgspec

from gpulab.stats.statistics import FEWEST

PROCESSES = 16
"""Among which the time of a run is divided. An interval over 16 leaves two out on either side.

On a shared machine single processes come out 10 to 300 % off. An interval over up to eleven reaches
to the outermost of them: of runs with a 5 % slowdown 72 % found it, with 16 processes 98 % do.
"""
CURVE_PROCESSES = FEWEST
"""Of each variant, where the first steps of fresh processes are shown: as many as carry an
interval.
"""
FEWEST_CURVE_PROCESSES = 3
"""Of each variant, where the time is spent before."""
ROUNDS = 5
_MOST_ROUNDS = 50
_LEAST_SHARE = 0.4
"""Of a process's part of the time that is measured, however long it takes to start."""
_LEAD_IN_S = 3e-3
"""Untimed steps before a block, in seconds: until a step of a few MiB takes as long as alone, at
steps of 1 ms as at those of 0.1 ms.
"""


class Plan(msgspec.Struct, frozen=True):
    """`epochs` of `rounds` rounds in each process. No epoch or round begins after `stretch_s` of a
    process. Width stops no run before `processes`.
    """

    rounds: int
    epochs: int
    stretch_s: float
    processes: int
    expected_s: float


def plan(
    *,
    time_s: float,
    round_s: float,
    builds_s: float,
    start_s: float,
    processes: int = FEWEST,
    exclusive: bool = False,
    brief: bool = False,
) -> Plan:
    """The plan for about `time_s` seconds of wall time.

    `round_s` is a round's time, `builds_s` that of the builds that every epoch makes anew, and
    `start_s` what a process takes before its first round, with the builds that it keeps.
    """
    # a longer part is spent better on more processes
    share_s = min(time_s / PROCESSES, max(2.0, 4 * start_s))
    stretch_s = max(_LEAST_SHARE * share_s, share_s - start_s)
    if brief:
        # a run that ends when it is decided needs processes, and not long ones
        stretch_s = min(stretch_s, max(0.1, 2 * builds_s))
    fit = 1
    if stretch_s > builds_s:
        fit = max(1, int((stretch_s - builds_s) / round_s))
    # Rounds take at least half as long as the builds they run on.
    rounds = min(fit, max(ROUNDS, min(_MOST_ROUNDS, ceil(builds_s / (2 * round_s)))))
    epochs = max(1, min(4, int(stretch_s / (builds_s + rounds * round_s))))
    rounds = max(rounds, min(_MOST_ROUNDS, int((stretch_s / epochs - builds_s) / round_s)))
    # a variant has its rounds by itself, and no pairs: more of them tell nothing more
    if exclusive:
        rounds = min(rounds, ROUNDS)
    process_s = start_s + epochs * (builds_s + rounds * round_s)
    expected_s = processes * process_s
    if not brief:
        expected_s = max(time_s, expected_s)
    return Plan(rounds, epochs, stretch_s, processes, expected_s)


def longest_block_s(time_s: float, candidates: int) -> float:
    """Up to which all blocks may be as long as the longest: a process still has its rounds."""
    round_s = _LEAST_SHARE * time_s / PROCESSES / ROUNDS
    return min(5e-3, max(0.0, round_s / candidates - _LEAD_IN_S))


def lead_in_steps(steps: int, step_s: float) -> int:
    """Untimed steps before a block of `steps`, to bring back the caches that other variants took.

    A long step needs none. By a device's clock a step may take next to nothing, and its time on the
    host: so there are at most twice as many as in the block.
    """
    if step_s >= 0.1:
        return 0
    return max(1, min(2 * steps, ceil(_LEAD_IN_S / max(step_s, 1e-9))))


def is_kept(build_s: float, first_step_s: float, time_s: float) -> bool:
    """Return whether a build is too expensive for every epoch: a process then keeps it, and the
    others are still rebuilt.
    """
    return build_s + first_step_s > min(0.3, 0.5 * time_s / PROCESSES)
