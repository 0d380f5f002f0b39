"""What whole commands report: the runs of `--run` with their sweeps, and a calibration. The outermost JSON."""

from __future__ import annotations

import msgspec

from gpulab.protocol.ceiling import Ceiling
from gpulab.protocol.device import Device
from gpulab.protocol.finding import Finding
from gpulab.report.exit_codes import Conclusion, ExitCode
from gpulab.report.report import RunReport
from gpulab.scenario import Param

SCHEMA = "gpulab.result/1"


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """Several runs of one scenario, one per value of a parameter.

    `best` is the value with the least time per item of each variant; `near` are those whose interval overlaps it.
    """

    scenario: str
    parameter: str
    best: dict[str, Param] = {}
    near: dict[str, list[Param]] = {}


class CalibrationReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `--calibrate --json` writes (schema gpulab.ceilings/1)."""

    schema: str = "gpulab.ceilings/1"
    outcome: Conclusion = Conclusion.MEASURED
    exit_code: ExitCode = ExitCode.MEASURED
    reason: Finding | None = None
    environment: dict[str, str | None] = {}
    device: Device | None = None
    at: str | None = None
    ceilings: list[Ceiling] = []
    findings: list[Finding] = []
    run_file: str = ""


class CommandReport(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one command: what `--run --json` writes."""

    schema: str = SCHEMA
    outcome: Conclusion = Conclusion.MEASURED
    exit_code: ExitCode = ExitCode.MEASURED
    environment: dict[str, str | None] = {}
    runs: list[RunReport] = []
    sweeps: list[Sweep] = []
