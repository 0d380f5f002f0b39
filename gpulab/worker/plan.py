"""How many epochs of how many rounds fit the time: pure arithmetic on what one build and one round cost."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from gpulab.model.compare import DEAR_FLOOR, FLOOR
from gpulab.model.stats import FEWEST

EPOCHS = 20
ROUNDS = 5
MOST_EPOCHS = 200
_MOST_ROUNDS = 50
_DEAR_BUILD_S = 1.0
_DEAR_ROUNDS = 200


@dataclass(frozen=True)
class Plan:
    """`epochs` is how many to have before width may stop the run; `most` where it stops in any case.

    `dear`: builds are too dear for enough epochs, so the interval is over pairs, with a wider floor.
    """

    rounds: int
    epochs: int
    most: int
    floor: float
    dear: bool


def plan(*, time_s: float, round_s: float, dearest_build_s: float, builds_s: float, alone: bool = False) -> Plan:
    """The plan for `time_s` seconds of rounds. More epochs come before more rounds: they carry the interval.

    Variants that run `alone` share no moment with each other, so only epochs can be paired, however dear.
    """
    fit = max(1, int(time_s / round_s))
    if dearest_build_s > _DEAR_BUILD_S and not alone:
        epochs = max(1, min(EPOCHS, int(time_s / builds_s)))
        if epochs < FEWEST:
            rounds = max(FEWEST, min(_DEAR_ROUNDS, fit // epochs))
            return Plan(rounds, epochs, epochs, DEAR_FLOOR, dear=True)
    # Rounds take at least half as long as the builds they run on, and leave time for enough epochs.
    wanted = max(ROUNDS, min(_MOST_ROUNDS, max(ceil(builds_s / (2 * round_s)), fit // MOST_EPOCHS), fit // EPOCHS))
    rounds = max(1, min(wanted, fit // FEWEST))
    epochs = max(FEWEST, min(EPOCHS, fit // rounds))
    return Plan(rounds, epochs, MOST_EPOCHS, FLOOR, dear=False)
