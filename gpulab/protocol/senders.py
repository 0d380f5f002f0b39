"""Which process may send which event. Whatever comes from another was forged, and makes a run invalid."""

from __future__ import annotations

from collections.abc import Mapping

from gpulab.protocol import events as e
from gpulab.protocol.event import Event
from gpulab.protocol.jobs import Calibrate, Job, Measure, TimeFunctions

_ANY_JOB: frozenset[type[Event]] = frozenset({e.StageStarted, e.Noticed, e.RunInvalid, e.WorkerDone})
_CALIBRATING: frozenset[type[Event]] = _ANY_JOB.union({e.WorkerReady, e.CeilingsMeasured, e.VariantFailed})
_TIMING: frozenset[type[Event]] = _CALIBRATING.union(
    {
        e.Built,
        e.Counted,
        e.Phases,
        e.Profiled,
        e.KernelsCompiled,
        e.Tuned,
        e.MemoryUsed,
        e.VariantRefused,
        e.VariantSkipped,
        e.Calibrated,
        e.WarmedUp,
        e.ProcessStarted,
        e.Examined,
        e.Planned,
        e.Samples,
        e.RoofProbed,
        e.AloneRun,
        e.SoloRun,
        e.OtherClock,
        e.FirstSteps,
        e.Stopped,
        e.Reported,
    }
)
WORKER: Mapping[type[Job], frozenset[type[Event]]] = {
    Measure: _TIMING.union({e.Checked, e.Unchecked, e.OutOfMemory}),
    TimeFunctions: _TIMING,
    Calibrate: _CALIBRATING,
}
"""A worker, by its job."""
SUPERVISOR: frozenset[type[Event]] = frozenset({e.Samples, e.WorkerExited})
"""The samples are those that a worker had not sent when it ended."""
TELEMETRY: frozenset[type[Event]] = frozenset(
    {e.TelemetryStarted, e.Telemetry, e.TelemetryLost, e.TelemetrySwitched, e.TelemetryEnded}
)
SESSION: frozenset[type[Event]] = frozenset(
    {
        e.RunStarted,
        e.EarlierRuns,
        e.CeilingsMeasured,
        e.TelemetryStarted,
        e.TelemetryLost,
        e.TelemetryEnded,
        e.Log,
        e.Noticed,
        e.VariantFailed,
        e.Examined,
        e.RunInvalid,
        e.RunEnded,
    }
)
