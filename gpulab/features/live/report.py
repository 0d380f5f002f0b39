"""What a run under way shows beyond its report: how its intervals narrowed, where its processes
lie, what was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gpulab.core.events import StageStarted, Telemetry
from gpulab.core.jobs import TELEMETRY_OFF
from gpulab.features.telemetry.report import TelemetryHistory
from gpulab.report.samples import SampleView
from gpulab.report.state import RunState
from gpulab.stats.series import Pair
from gpulab.stats.statistics import FEWEST, as_speedup, correlated_interval


@dataclass(frozen=True)
class Look:
    """The interval of a speedup over the first `units` processes."""

    units: int
    median: float
    low: float
    high: float


@dataclass(frozen=True)
class LiveDetail:
    """By (variant, against) the looks at 8, 16, 32, ... processes, and now; by name the median time
    of each process.
    """

    looks: dict[Pair, list[Look]] = field(default_factory=dict)
    times_s: dict[str, list[float]] = field(default_factory=dict)
    """Seconds per item, in the order of the processes."""
    readings: Sequence[Telemetry] = ()
    stages: Sequence[StageStarted] = ()
    sampled: bool = True
    """Whether telemetry was asked for."""
    on_gpu: bool = False
    """Whether the run is to be on one."""


def live_detail(state: RunState, pairs: Iterable[Pair]) -> LiveDetail:
    """As of the last event, with the looks of these pairs. The state stays as it is."""
    view = state.samples.view()
    keys = list(state.samples.series)
    job = state.job
    return LiveDetail(
        looks={pair: looks for pair in pairs if (looks := _looks(view, pair))},
        times_s={key[0]: values for key in keys if len(key) == 1 and (values := view.units(key))},
        readings=state.part(TelemetryHistory).recent,
        stages=tuple(state.all(StageStarted)),
        sampled=state.request is not None and state.request.telemetry != TELEMETRY_OFF,
        on_gpu=job is not None and job.device != "cpu",
    )


def _looks(view: SampleView, pair: Pair) -> list[Look]:
    units = view.units(pair)
    counts = []
    count = FEWEST
    while count < len(units):
        counts.append(count)
        count *= 2
    counts += [len(units)] if len(units) >= FEWEST else []
    looks = []
    for count in counts:
        if theta := correlated_interval(units[:count]):
            speedup = as_speedup(theta)
            looks.append(Look(count, speedup.median, speedup.low, speedup.high))
    return looks
