"""What a run whose telemetry was switched off and on in turn says of telemetry: events to the
report of the command.

A window lasts from one switch to the next. Of each pair of neighbouring windows one has telemetry,
so a machine that drifts weighs on both sides alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from math import exp, log
from statistics import median

from gpulab.core.events import Event, Samples, TelemetrySwitched
from gpulab.core.statuses import ExitCode
from gpulab.report.commands import ObserverEffect
from gpulab.report.report import RunReport
from gpulab.stats.statistics import Interval, median_interval

_SETTLE_S = 0.05
_Block = tuple[float, float, float]
"""Start, end, and time over the variant's median."""


def log_ratios(events: Sequence[Event]) -> list[float]:
    """log(time on / time off) of each pair of neighbouring windows, every block against its
    variant's median.

    Of the events only `TelemetrySwitched` and `Samples` count.
    """
    switches = [event for event in events if isinstance(event, TelemetrySwitched)]
    blocks = _blocks(events)
    windows: list[tuple[bool, float | None]] = []
    for switch, following in pairwise(switches):
        inside = [
            time
            for start, end, time in blocks
            if start >= switch.t + _SETTLE_S and end <= following.t
        ]
        windows.append((switch.on, log(median(inside)) if inside else None))
    ratios = []
    for (first_on, first), (second_on, second) in zip(windows[::2], windows[1::2], strict=False):
        if first_on != second_on and first is not None and second is not None:
            ratios.append(first - second if first_on else second - first)
    return ratios


def ratio_interval(logarithms: Sequence[float]) -> Interval | None:
    """The median of the pairs' ratios with its 99 % interval, or None where the pairs are too few
    for one.
    """
    interval = median_interval(logarithms)
    if interval is None:
        return None
    return Interval(exp(interval.median), exp(interval.low), exp(interval.high), interval.n)


def _blocks(events: Sequence[Event]) -> list[_Block]:
    # Against the whole run's median: an epoch is shorter than a window, and its own would take the
    # effect away.
    timings: dict[str, list[_Block]] = defaultdict(list)
    for event in events:
        if isinstance(event, Samples):
            rows = zip(event.variant, event.times_s, event.ended, event.steps, strict=True)
            for index, time_s, end, steps in rows:
                timings[event.names[index]].append((end - time_s * steps, end, time_s))
    blocks = []
    for rows_of_variant in timings.values():
        usual = median(time_s for _, _, time_s in rows_of_variant)
        blocks += [(start, end, time_s / usual) for start, end, time_s in rows_of_variant]
    return blocks


SMALL_EFFECT = 0.01
"""The share of a time within which the whole interval must lie for the effect to be small."""


def observer_effect_of(report: RunReport, events: Sequence[Event]) -> ObserverEffect:
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
    """Whether the whole interval lies within `SMALL_EFFECT` of no effect; False where there is
    none.
    """
    if effect.low is None or effect.high is None:
        return False
    return all(abs(end - 1) <= SMALL_EFFECT for end in (effect.low, effect.high))


def exit_code_of(effect: ObserverEffect, report: RunReport) -> ExitCode:
    """Without an interval that of the run, or INCONCLUSIVE where nothing was wrong with the run."""
    if effect.ratio is not None:
        return ExitCode.MEASURED
    return report.exit_code or ExitCode.INCONCLUSIVE
