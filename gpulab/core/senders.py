"""Which process may send which event. Whatever comes from another was forged, and makes a run
invalid.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpulab.core.events import (
    AloneRun,
    Built,
    Calibrated,
    CeilingsMeasured,
    Checked,
    Counted,
    EarlierRuns,
    Event,
    Examined,
    FirstSteps,
    KernelsCompiled,
    Log,
    MemoryUsed,
    Noticed,
    OtherClock,
    OutOfMemory,
    Phases,
    Planned,
    ProcessStarted,
    Profiled,
    Reported,
    RoofProbed,
    RunEnded,
    RunInvalid,
    RunStarted,
    Samples,
    SoloRun,
    StageStarted,
    Stopped,
    Telemetry,
    TelemetryEnded,
    TelemetryLost,
    TelemetryStarted,
    TelemetrySwitched,
    Tuned,
    Unchecked,
    VariantFailed,
    VariantRefused,
    VariantSkipped,
    WarmedUp,
    WorkerDone,
    WorkerExited,
    WorkerReady,
)
from gpulab.core.jobs import Calibrate, Job, Measure, TimeFunctions

_ANY_JOB: frozenset[type[Event]] = frozenset({StageStarted, Noticed, RunInvalid, WorkerDone})
_CALIBRATING: frozenset[type[Event]] = _ANY_JOB.union(
    {WorkerReady, CeilingsMeasured, VariantFailed}
)
_TIMING: frozenset[type[Event]] = _CALIBRATING.union(
    {
        Built,
        Counted,
        Phases,
        Profiled,
        KernelsCompiled,
        Tuned,
        MemoryUsed,
        VariantRefused,
        VariantSkipped,
        Calibrated,
        WarmedUp,
        ProcessStarted,
        Examined,
        Planned,
        Samples,
        RoofProbed,
        AloneRun,
        SoloRun,
        OtherClock,
        FirstSteps,
        Stopped,
        Reported,
    }
)
WORKER: Mapping[type[Job], frozenset[type[Event]]] = {
    Measure: _TIMING.union({Checked, Unchecked, OutOfMemory}),
    TimeFunctions: _TIMING,
    Calibrate: _CALIBRATING,
}
"""A worker, by its job."""
SUPERVISOR: frozenset[type[Event]] = frozenset({Samples, WorkerExited})
"""The samples are those that a worker had not sent when it ended."""
TELEMETRY: frozenset[type[Event]] = frozenset(
    {TelemetryStarted, Telemetry, TelemetryLost, TelemetrySwitched, TelemetryEnded}
)
SESSION: frozenset[type[Event]] = frozenset(
    {
        RunStarted,
        EarlierRuns,
        CeilingsMeasured,
        TelemetryStarted,
        TelemetryLost,
        TelemetryEnded,
        Log,
        Noticed,
        VariantFailed,
        Examined,
        RunInvalid,
        RunEnded,
    }
)
