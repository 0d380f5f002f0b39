"""The observer effect of telemetry as text."""

from __future__ import annotations

from gpulab.core.finding import Finding
from gpulab.features.observer_effect.report import SMALL_EFFECT, is_small
from gpulab.report.commands import ObserverEffect
from gpulab.report.sentences import sentence_with_place


def effect_line(effect: ObserverEffect, reason: Finding | None, window_s: float) -> str:
    """The ratio with its interval, or why there is none: `reason` is that of the run."""
    if effect.ratio is None or effect.low is None or effect.high is None:
        cause = sentence_with_place(reason) if reason else "give it more --time"
        return f"{effect.scenario}: {effect.pairs} pairs, too few for an interval: {cause}"
    interval = f"{effect.ratio:.4f} ({effect.low:.4f} to {effect.high:.4f})"
    pairs = f"{effect.pairs} pairs of {window_s:g} s"
    return (
        f"observer effect of telemetry on {effect.scenario}: time with / without {interval}, "
        f"{pairs}"
    )


def judgement(effect: ObserverEffect) -> str | None:
    """Whether the effect is small; None where there is no interval."""
    if effect.ratio is None:
        return None
    margin = f"inside {100 * SMALL_EFFECT:g} %"
    return margin if is_small(effect) else f"not shown to be {margin}"
