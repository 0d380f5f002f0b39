"""What whole commands report: the runs of `--run` with their sweeps, a calibration; and the exit
code of several.

The outermost JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from gpulab.commit import version
from gpulab.core.estimate import Estimate
from gpulab.core.findings import Finding
from gpulab.core.jobs import Required
from gpulab.core.machine import Device
from gpulab.core.statuses import Conclusion, ExitCode, Verdict, conclusion_of, first_in_order
from gpulab.features import present
from gpulab.features.roofline.events import Ceiling
from gpulab.report.report import RunReport, fields_of
from gpulab.scenario import Param


class Contender(msgspec.Struct, frozen=True, kw_only=True):
    """One variant at one value: the variant `name` of the final."""

    name: str
    variant: str
    value: Param


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """Several runs of one scenario, one per value of a parameter, and a final one that compares the
    best of them.

    By variant: `best` is the value with the least time per item, `best_among` that one and those
    statistically tied with it, `paired` whether pairs of the final run decided it, or else medians
    of separate runs.
    """

    scenario: str
    parameter: str
    best: dict[str, Param] = {}
    best_among: dict[str, list[Param]] = {}
    paired: dict[str, bool] = {}
    contenders: list[Contender] = []
    """Of the final; those of a variant are compared with its first."""
    final: RunReport | None = None


class RepeatReport(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison, or one plain function, in `runs` runs; `speedups` and `times_s` are their
    medians in order.

    The interval of `speedup` is the exact 99 % interval of the median over runs, None of fewer
    than 8. `against` and everything about a speedup are None of a function, which is compared with
    nothing. `span_s` is the time from the start of the first run to the end of the last, None where
    that is not known: what changes in longer than that is in no interval.
    """

    scenario: str
    params: dict[str, Param] = {}
    variant: str
    against: str | None = None
    speedup: Estimate | None = None
    verdict: Verdict | None = None
    runs: int
    span_s: float | None = None
    speedups: list[float] = []
    time_s: Estimate | None = None
    times_s: list[float] = []


class CalibrationReport(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON of `--calibrate --json` (schema gpulab.ceilings/1)."""

    schema: str = "gpulab.ceilings/1"
    outcome: Conclusion = Conclusion.MEASURED
    exit_code: ExitCode | None = ExitCode.MEASURED
    reason: Finding | None = None
    environment: dict[str, str | None] = {}
    device: Device | None = None
    at: str | None = None
    ceilings: tuple[Ceiling, ...] = ()
    findings: list[Finding] = []
    run_file: str = ""


def calibration_report(report: RunReport) -> CalibrationReport:
    """Return the report of a run that calibrates."""
    return CalibrationReport(
        **fields_of(report, "outcome", "exit_code", "reason", "device", "findings", "run_file"),
        **fields_of(report.ceilings, "at", "ceilings"),
        environment=report.environment or {"gpulab": version()},
    )


class CommandReport(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one command: what `--run --json` writes."""

    schema: str = "gpulab.result/2"
    outcome: Conclusion = Conclusion.MEASURED
    exit_code: ExitCode = ExitCode.MEASURED
    reason: Finding | None = None
    """Why the interval over runs does not reach what is required."""
    environment: dict[str, str | None] = {}
    runs: list[RunReport] = []
    sweeps: list[Sweep] = []
    over_runs: list[RepeatReport] = []


def combine(
    runs: list[RunReport],
    environment: dict[str, str | None],
    sweeps: Sequence[Sweep] = (),
    over_runs: Sequence[RepeatReport] | None = None,
    *,
    required_of: Callable[[str], Required] = lambda scenario: Required(),
) -> CommandReport:
    """All runs of one command. `over_runs`, None of a command that repeats nothing, must reach what
    is required, by the name of the scenario.
    """
    code = first_in_order([run.exit_code for run in runs])
    # no other outcome of a final counts: the values have been measured
    if any(each.final and each.final.exit_code == ExitCode.INTERRUPTED for each in sweeps):
        code = ExitCode.INTERRUPTED
    reason = None
    repeats = present("repeats.report")
    if repeats and over_runs is not None and code == ExitCode.MEASURED:
        required = {run.scenario: required_of(run.scenario) for run in runs}
        code, reason = repeats.gate(over_runs, required)
    return CommandReport(
        outcome=conclusion_of(code),
        exit_code=code,
        reason=reason,
        environment=environment,
        runs=runs,
        sweeps=list(sweeps),
        over_runs=list(over_runs or ()),
    )
