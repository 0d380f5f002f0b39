"""What whole commands report: the runs of `--run` with their sweeps, a calibration, an observer effect.

The outermost JSON.
"""

from __future__ import annotations

import msgspec

from gpulab.protocol.ceiling import Ceiling
from gpulab.protocol.device import Device
from gpulab.protocol.finding import Finding
from gpulab.report.exit_codes import Conclusion, ExitCode
from gpulab.report.over_runs import OverRuns
from gpulab.report.report import RunReport
from gpulab.scenario import Param
from gpulab.version import __version__

SCHEMA = "gpulab.result/1"


class Contender(msgspec.Struct, frozen=True, kw_only=True):
    """One variant at one value, which in the final is a variant of this name."""

    name: str
    variant: str
    value: Param


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """Several runs of one scenario, one per value of a parameter, and a final one that compares the best of them.

    By variant: `best` is the value with the least time per item, `best_among` that one and those that it cannot be
    told from, `paired` whether that was decided by pairs of the final run, or else by medians of separate runs.
    """

    scenario: str
    parameter: str
    best: dict[str, Param] = {}
    best_among: dict[str, list[Param]] = {}
    paired: dict[str, bool] = {}
    contenders: list[Contender] = []
    """Of the final; those of a variant are compared with its first."""
    final: RunReport | None = None


class CalibrationReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `--calibrate --json` writes (schema gpulab.ceilings/1)."""

    schema: str = "gpulab.ceilings/1"
    outcome: Conclusion = Conclusion.MEASURED
    exit_code: ExitCode | None = ExitCode.MEASURED
    reason: Finding | None = None
    environment: dict[str, str | None] = {}
    device: Device | None = None
    at: str | None = None
    ceilings: list[Ceiling] = []
    findings: list[Finding] = []
    run_file: str = ""


def calibration_report(report: RunReport) -> CalibrationReport:
    """What a run that calibrates has measured."""
    return CalibrationReport(
        outcome=report.outcome,
        exit_code=report.exit_code,
        reason=report.reason,
        environment=report.environment or {"gpulab": __version__},
        device=report.device,
        at=report.ceilings.at if report.ceilings else None,
        ceilings=report.ceilings.ceilings if report.ceilings else [],
        findings=report.findings,
        run_file=report.run_file,
    )


class ObserverEffect(msgspec.Struct, frozen=True, kw_only=True):
    """Time with telemetry over time without: the median of the pairs, and its 99 % interval.

    What `--observer-effect --json` writes.
    """

    schema: str = "gpulab.observer/1"
    scenario: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    run_file: str = ""


class CommandReport(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one command: what `--run --json` writes."""

    schema: str = SCHEMA
    outcome: Conclusion = Conclusion.MEASURED
    exit_code: ExitCode = ExitCode.MEASURED
    reason: Finding | None = None
    """Why the interval over runs does not reach what is required."""
    environment: dict[str, str | None] = {}
    runs: list[RunReport] = []
    sweeps: list[Sweep] = []
    over_runs: list[OverRuns] = []
