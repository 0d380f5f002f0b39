"""What was guessed before a run, and what came out: a line each in the user's state folder."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from gpulab.core.text import plain_json
from gpulab.features.history.report import PastComparison
from gpulab.features.predictions.report import Prediction, limit_right
from gpulab.report.report import RunReport
from gpulab.session.run_files import state_folder
from gpulab.stats.comparison import Comparison

_MOST = 1000


class Guess(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`guesses` of how many times as fast `variant` is: one, or those of a class. `limit` of the
    baseline.
    """

    at: str
    scenario: str
    variant: str
    guesses: list[float]
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    limit: str | None = None
    limit_right: bool | None = None


class Record(NamedTuple):
    """Of guesses that were answered: how many there are, and how many were within a factor of
    two.
    """

    answered: int
    near: int


def keep(report: RunReport, best: Comparison | PastComparison, prediction: Prediction) -> None:
    """Append a prediction with what was measured of the best variant. What cannot be kept is no
    problem of a run.
    """
    limit = limit_right(prediction, report)
    guess = Guess(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        scenario=report.scenario,
        variant=best.variant,
        guesses=list(prediction.speedups),
        speedup=best.speedup,
        low=best.low,
        high=best.high,
        limit=prediction.limit,
        limit_right=limit[1] if limit else None,
    )
    with suppress(OSError):
        folder = state_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with _path().open("ab") as file:
            file.write(plain_json(msgspec.json.encode(guess)) + b"\n")


def record() -> Record:
    """Of this user's own guesses; those of a class are others'."""
    try:
        lines = _path().read_bytes().splitlines()[-_MOST:]
    except OSError:
        return Record(0, 0)
    own = []
    for line in lines:
        with suppress(msgspec.DecodeError):
            guess = msgspec.json.decode(line, type=Guess)
            own += (
                [guess]
                if len(guess.guesses) == 1 and guess.speedup and guess.guesses[0] > 0
                else []
            )
    near = sum(0.5 <= guess.guesses[0] / guess.speedup <= 2 for guess in own if guess.speedup)
    return Record(len(own), near)


def _path() -> Path:
    return state_folder() / "guesses.jsonl"
