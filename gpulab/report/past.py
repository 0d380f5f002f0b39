"""The entry of a run in the history, for lists and later comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from gpulab.core.estimate import Estimate
from gpulab.core.events import RunStarted
from gpulab.core.jobs import Job, Measure, subject_of
from gpulab.core.machine import Device
from gpulab.core.statuses import Conclusion, ExitCode, Verdict
from gpulab.core.values import (
    Amount,
    Count,
    Line,
    Name,
    ParamValue,
    PositiveAmount,
    Seconds,
    StepTime,
    Text,
)
from gpulab.report.report import RunReport, fields_of
from gpulab.report.state import RunState
from gpulab.stats.comparison import Comparison

_WHOLE = ("torch", "cuda", "driver", "triton", "cupy-cuda12x", "cupy-cuda13x")
OF_TWO_PARTS = ("gpulab", "python", "numpy")
"""Of these the first two parts of a version count; a further one is no changed environment."""
_COUNTING = (Conclusion.MEASURED, Conclusion.SLOWER, Conclusion.INCONCLUSIVE)


class PastComparison(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One comparison as it was reported."""

    variant: Name
    against: Name
    verdict: Verdict
    measured: PositiveAmount | None = msgspec.field(default=None, name="speedup")
    low: PositiveAmount | None = None
    high: PositiveAmount | None = None

    @property
    def speedup(self) -> Estimate | None:
        """Return the speedup with its interval; None where none was claimed."""
        if self.measured is None:
            return None
        return Estimate(value=self.measured, low=self.low, high=self.high)


def past_comparison(comparison: Comparison | PastComparison) -> PastComparison:
    """Return what is kept of a comparison. ValidationError where its values are out of range."""
    if isinstance(comparison, PastComparison):
        return comparison
    speedup = comparison.speedup
    kept = {
        "variant": comparison.variant,
        "against": comparison.against,
        "verdict": comparison.verdict,
        "speedup": speedup and speedup.value,
        "low": speedup and speedup.low,
        "high": speedup and speedup.high,
    }
    return msgspec.convert(kept, PastComparison)


class PastRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The summary of a run that is kept.

    `at` is UTC, ISO 8601, when the run started; `fastest_s` the shortest median of a step.
    """

    at: Name
    host: Line = ""
    run_file: Text
    scenario: Text
    title: Line = ""
    path: Text = ""
    source_sha256: Name
    exercise: Name = ""
    params: dict[Name, ParamValue] = {}
    device: Device
    environment: dict[Name, Line | None] = {}
    power_limit_w: Amount | None = None
    smoke: bool = False
    quick: bool = False
    outcome: Conclusion
    exit_code: ExitCode
    fail_below: PositiveAmount | None = None
    elapsed_s: Seconds = 0.0
    rounds: Count = 0
    comparisons: tuple[PastComparison, ...] = ()
    best: Name | None = None
    fastest_s: StepTime | None = None

    @property
    def measured(self) -> bool:
        """Return whether it came to a result."""
        return self.outcome in _COUNTING

    @property
    def stopped(self) -> bool:
        return self.outcome == Conclusion.INTERRUPTED

    @property
    def counts(self) -> bool:
        """Return whether what it measured is worth comparing with."""
        return self.measured and not (self.smoke or self.quick)

    @property
    def key(self) -> tuple[object, ...]:
        return key_of(self.source_sha256, self.params, self.host, self.device, self.environment)


def key_of(
    source_sha256: str,
    params: Mapping[str, object],
    host: str,
    device: Device,
    environment: Mapping[str, str | None],
) -> tuple[object, ...]:
    """The key that is equal for two runs of the same measurement."""
    versions = (
        *(environment.get(name) for name in _WHOLE),
        *(first_parts(environment.get(name)) for name in OF_TWO_PARTS),
    )
    named = device.uuid or device.name
    return (
        source_sha256,
        tuple(sorted(params.items())),
        host,
        device.kind,
        named,
        device.threads,
        versions,
    )


def has_contenders(job: Job) -> bool:
    """Return whether the run is the final of a sweep: its variants have parameters of their own."""
    if not isinstance(job, Measure):
        return False
    return any(info.function is not None for info in job.subject.variants)


def past_run(state: RunState, report: RunReport) -> PastRun | None:
    """The entry of a run in the history; None where it measured no file, or had no device.

    ValidationError where its values are out of range.
    """
    started = state.last(RunStarted)
    subject = subject_of(started.request.job) if started else None
    if started is None or subject is None or has_contenders(started.request.job):
        return None
    if report.device is None or report.exit_code is None:
        return None
    limits = report.telemetry.limits if report.telemetry else {}
    times_s = [variant.time_s.value for variant in report.variants if variant.time_s]
    return replace(
        kept_of(report),
        at=started.at,
        host=started.host,
        path=subject.path,
        run_file=str(Path(report.run_file).absolute()),
        elapsed_s=report.progress.elapsed_s,
        rounds=report.method.rounds,
        power_limit_w=limits.get("power"),
        fastest_s=min(times_s, default=None),
    )


def first_parts(version: str | None) -> str | None:
    if version is None:
        return None
    return ".".join(version.split(".")[:2])


def kept_of(report: RunReport) -> PastRun:
    """Return what is kept of a report. ValidationError where its values are out of range."""
    names = set(PastRun.__struct_fields__) & set(report.__struct_fields__)
    kept = fields_of(report, *names)
    kept["comparisons"] = tuple(map(past_comparison, report.comparisons))
    return msgspec.convert(kept, PastRun, from_attributes=True)
