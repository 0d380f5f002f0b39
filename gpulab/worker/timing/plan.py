"""How many epochs of how many rounds fit the time: pure arithmetic on what one build and one round cost."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from gpulab.analysis.comparison import EXPENSIVE_FLOOR, FLOOR
from gpulab.analysis.statistics import FEWEST

EPOCHS = 20
ROUNDS = 5
_EPOCHS_OF_THE_TIME = 200
_MOST_ROUNDS = 50
_EXPENSIVE_BUILD_S = 1.0
_EXPENSIVE_ROUNDS = 200


@dataclass(frozen=True)
class Plan:
    """`epochs` is how many to have before width may stop the run; `most`, where there is one, stops it in any case.

    `expensive`: builds are too expensive for enough epochs, so the interval is over pairs, with a wider floor.
    """

    rounds: int
    epochs: int
    most: int | None
    floor: float
    expensive: bool


def plan(*, time_s: float, round_s: float, longest_build_s: float, builds_s: float, exclusive: bool = False) -> Plan:
    """The plan for `time_s` seconds of rounds. More epochs come before more rounds: they carry the interval.

    Variants that run `exclusive` share no moment with each other, so only epochs can be paired, however expensive.
    """
    fit = max(1, int(time_s / round_s))
    if longest_build_s > _EXPENSIVE_BUILD_S and not exclusive:
        epochs = max(1, min(EPOCHS, int(time_s / builds_s)))
        if epochs < FEWEST:
            rounds = max(FEWEST, min(_EXPENSIVE_ROUNDS, fit // epochs))
            return Plan(rounds, epochs, epochs, EXPENSIVE_FLOOR, expensive=True)
    # Rounds take at least half as long as the builds they run on, and leave time for enough epochs.
    target = max(
        ROUNDS, min(_MOST_ROUNDS, max(ceil(builds_s / (2 * round_s)), fit // _EPOCHS_OF_THE_TIME), fit // EPOCHS)
    )
    rounds = max(1, min(target, fit // FEWEST))
    epochs = max(FEWEST, min(EPOCHS, fit // rounds))
    return Plan(rounds, epochs, None, FLOOR, expensive=False)
