"""What a run under way shows beyond its report: the ratios and times of its processes, which checks
passed, what was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gpulab.core.estimate import value_of
from gpulab.core.events import Built, Examined, RunStarted, StageStarted
from gpulab.core.limits import TELEMETRY_OFF, TELEMETRY_ON
from gpulab.core.statuses import CheckKind
from gpulab.features.telemetry.events import Telemetry
from gpulab.features.telemetry.report import TelemetryState
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.state import RunState
from gpulab.stats.comparison import Comparison
from gpulab.stats.series import Pair


@dataclass(frozen=True)
class LiveDetail:
    """By (variant, against) the log-ratio of each process; by name its median time, in seconds per
    item. Both in the order of the processes.
    """

    ratios: dict[Pair, list[float]] = field(default_factory=dict)
    times_s: dict[str, list[float]] = field(default_factory=dict)
    passed: dict[str, set[CheckKind]] = field(default_factory=dict)
    """By variant, the checks that it passed."""
    built: frozenset[str] = frozenset()
    """Variants of which it is known what they declare."""
    missing: frozenset[str] = frozenset()
    """Variants that this machine cannot run."""
    readings: Sequence[Telemetry] = ()
    started: float = 0.0
    """When the run began, and below its stages, on the clock of the events."""
    stages: Sequence[StageStarted] = ()
    sampled: bool = True
    """Whether telemetry was asked for."""
    on_gpu: bool = False
    """Whether the readings are to be of one."""


def live_detail(state: RunState, pairs: Iterable[Pair]) -> LiveDetail:
    """As of the last event, with the ratios of these pairs. The state stays as it is."""
    view = state.samples.view()
    keys = list(state.samples.series)
    telemetry = state.request.telemetry if state.request else TELEMETRY_ON
    device = state.job.device if state.job else "cpu"
    started = state.last(RunStarted)
    passed = {
        name: {kind for kind in CheckKind if (last := variant.last(Examined, kind)) and last.ok}
        for name, variant in state.variants.items()
    }
    return LiveDetail(
        ratios={pair: values for pair in pairs if (values := view.units(pair))},
        times_s={key[0]: values for key in keys if len(key) == 1 and (values := view.units(key))},
        passed=passed,
        built=frozenset(name for name, variant in state.variants.items() if variant.last(Built)),
        missing=frozenset(name for name, entry in state.variants.items() if entry.info.missing),
        readings=state.part(TelemetryState).recent,
        started=started.t if started else 0.0,
        stages=tuple(state.all(StageStarted)),
        sampled=telemetry != TELEMETRY_OFF,
        on_gpu=telemetry not in (TELEMETRY_ON, TELEMETRY_OFF) or device != "cpu",
    )


@dataclass(frozen=True)
class LiveReport:
    """The data that panels are drawn from: the report so far, and what it has no place for."""

    report: RunReport
    detail: LiveDetail
    predicted: float | None = None
    """How many times as fast someone said it would be."""

    @property
    def main_comparison(self) -> Comparison | None:
        """The comparison that a panel for one of them is about: the best so far, or the first that
        has a number.
        """
        compared = self.report.first_comparisons
        best = next((entry for entry in compared if entry.variant == self.report.best), None)
        return best or max(
            compared,
            key=lambda entry: value_of(entry.speedup) or 0.0,
            default=None,
        )

    @property
    def variants(self) -> list[VariantReport]:
        """Those that this machine can run."""
        return [entry for entry in self.report.variants if entry.name not in self.detail.missing]

    @property
    def is_prepared(self) -> bool:
        """Return whether the first process has been measured."""
        return not self.report.under_way or any(self.detail.times_s.values())

    @property
    def stage_s(self) -> float:
        """Since when its stage goes on."""
        stages = self.detail.stages
        before_s = stages[-1].t - self.detail.started if stages else 0.0
        return max(0.0, self.report.progress.elapsed_s - before_s)

    def ratios(self, comparison: Comparison) -> Sequence[float]:
        """The log-ratio of each process."""
        return self.detail.ratios.get((comparison.variant, comparison.against), ())


def live_run(report: RunReport, state: RunState, predicted: float | None = None) -> LiveReport:
    """A run as of the last event of its state."""
    pairs = [(entry.variant, entry.against) for entry in report.comparisons]
    return LiveReport(report, live_detail(state, pairs), predicted)
