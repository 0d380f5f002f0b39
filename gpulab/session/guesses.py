"""What was guessed before a run, and what came out: a line each in the user's state folder."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from gpulab.protocol.text import plain_json
from gpulab.session.run_files import state_folder


class Guess(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`guesses` of how many times as fast `variant` is; one, or those of a class."""

    at: str
    scenario: str
    variant: str
    guesses: list[float]
    speedup: float | None = None
    low: float | None = None
    high: float | None = None


def keep(scenario: str, variant: str, guesses: list[float], measured: tuple[float | None, ...]) -> None:
    """Append a guess with what was measured: (speedup, low, high). What cannot be kept is no problem of a run."""
    speedup, low, high = measured
    guess = Guess(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        scenario=scenario,
        variant=variant,
        guesses=guesses,
        speedup=speedup,
        low=low,
        high=high,
    )
    with suppress(OSError):
        folder = state_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "guesses.jsonl").open("ab") as file:
            file.write(plain_json(msgspec.json.encode(guess)) + b"\n")
