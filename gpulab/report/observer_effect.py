"""What a run whose telemetry was switched off and on in turn says of telemetry: events to the report of the command."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.analysis.observer_effect import log_ratios, ratio_interval
from gpulab.protocol.events import AnyEvent
from gpulab.report.command_report import ObserverEffect
from gpulab.report.exit_codes import ExitCode
from gpulab.report.report import RunReport

SMALL_EFFECT = 0.01
"""The share of a time within which the whole interval must lie for the effect to be small."""


def observer_effect_of(report: RunReport, events: Sequence[AnyEvent]) -> ObserverEffect:
    """The effect, from the switches and the samples of the run that the report is of."""
    logarithms = log_ratios(events)
    interval = ratio_interval(logarithms)
    return ObserverEffect(
        scenario=report.scenario,
        ratio=interval.median if interval else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        pairs=len(logarithms),
        run_file=report.run_file,
    )


def is_small(effect: ObserverEffect) -> bool:
    """Whether the whole interval lies within `SMALL_EFFECT` of no effect; False where there is none."""
    if effect.low is None or effect.high is None:
        return False
    return all(abs(end - 1) <= SMALL_EFFECT for end in (effect.low, effect.high))


def exit_code_of(effect: ObserverEffect, report: RunReport) -> ExitCode:
    """Without an interval that of the run, or INCONCLUSIVE where nothing was wrong with the run."""
    if effect.ratio is not None:
        return ExitCode.MEASURED
    return report.exit_code or ExitCode.INCONCLUSIVE
