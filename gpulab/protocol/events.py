"""The one stream of events of a run: lines of JSON, one struct per line, tagged by `type`.

Names and numbers only: callables, tensors and exceptions never cross a process boundary.
"""

from __future__ import annotations

from gpulab.protocol.check_events import Examined as Examined
from gpulab.protocol.check_events import ProcessStarted as ProcessStarted
from gpulab.protocol.event import Event as Event
from gpulab.protocol.measure_events import AloneRun as AloneRun
from gpulab.protocol.measure_events import Built as Built
from gpulab.protocol.measure_events import Calibrated as Calibrated
from gpulab.protocol.measure_events import CeilingsMeasured as CeilingsMeasured
from gpulab.protocol.measure_events import Checked as Checked
from gpulab.protocol.measure_events import Counted as Counted
from gpulab.protocol.measure_events import FirstSteps as FirstSteps
from gpulab.protocol.measure_events import KernelsCompiled as KernelsCompiled
from gpulab.protocol.measure_events import OtherClock as OtherClock
from gpulab.protocol.measure_events import OutOfMemory as OutOfMemory
from gpulab.protocol.measure_events import Planned as Planned
from gpulab.protocol.measure_events import Reported as Reported
from gpulab.protocol.measure_events import Samples as Samples
from gpulab.protocol.measure_events import SoloRun as SoloRun
from gpulab.protocol.measure_events import Stopped as Stopped
from gpulab.protocol.measure_events import Tuned as Tuned
from gpulab.protocol.measure_events import Unchecked as Unchecked
from gpulab.protocol.measure_events import VariantRefused as VariantRefused
from gpulab.protocol.measure_events import VariantSkipped as VariantSkipped
from gpulab.protocol.measure_events import WarmedUp as WarmedUp
from gpulab.protocol.profile_events import MemoryUsed as MemoryUsed
from gpulab.protocol.profile_events import Phases as Phases
from gpulab.protocol.profile_events import Profiled as Profiled
from gpulab.protocol.roof_events import RoofProbed as RoofProbed
from gpulab.protocol.run_events import DEVICE_LOST as DEVICE_LOST
from gpulab.protocol.run_events import PIPE_LOST as PIPE_LOST
from gpulab.protocol.run_events import EarlierRuns as EarlierRuns
from gpulab.protocol.run_events import Log as Log
from gpulab.protocol.run_events import Noticed as Noticed
from gpulab.protocol.run_events import PastSpeedups as PastSpeedups
from gpulab.protocol.run_events import RunEnded as RunEnded
from gpulab.protocol.run_events import RunInvalid as RunInvalid
from gpulab.protocol.run_events import RunStarted as RunStarted
from gpulab.protocol.run_events import StageStarted as StageStarted
from gpulab.protocol.run_events import VariantFailed as VariantFailed
from gpulab.protocol.run_events import WorkerDone as WorkerDone
from gpulab.protocol.run_events import WorkerExited as WorkerExited
from gpulab.protocol.run_events import WorkerReady as WorkerReady
from gpulab.protocol.telemetry_events import Telemetry as Telemetry
from gpulab.protocol.telemetry_events import TelemetryEnded as TelemetryEnded
from gpulab.protocol.telemetry_events import TelemetryLost as TelemetryLost
from gpulab.protocol.telemetry_events import TelemetryStarted as TelemetryStarted
from gpulab.protocol.telemetry_events import TelemetrySwitched as TelemetrySwitched

AnyEvent = (
    RunStarted
    | WorkerReady
    | EarlierRuns
    | StageStarted
    | Built
    | Counted
    | CeilingsMeasured
    | Phases
    | Profiled
    | MemoryUsed
    | KernelsCompiled
    | Tuned
    | Checked
    | Unchecked
    | VariantRefused
    | VariantSkipped
    | OutOfMemory
    | VariantFailed
    | Calibrated
    | WarmedUp
    | Planned
    | Samples
    | AloneRun
    | SoloRun
    | OtherClock
    | FirstSteps
    | TelemetryStarted
    | Telemetry
    | TelemetryLost
    | TelemetrySwitched
    | TelemetryEnded
    | ProcessStarted
    | Examined
    | RoofProbed
    | Stopped
    | Reported
    | Log
    | Noticed
    | WorkerExited
    | WorkerDone
    | RunInvalid
    | RunEnded
)
