"""Of several runs of one command: the exit code that counts, and what they give together."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.report.command_report import CommandReport, Sweep
from gpulab.report.exit_codes import ExitCode, conclusion_of, first_in_order
from gpulab.report.over_runs import OverRuns, gate
from gpulab.report.report import RunReport


def combine(
    runs: list[RunReport],
    environment: dict[str, str | None],
    sweeps: Sequence[Sweep] = (),
    over_runs: Sequence[OverRuns] | None = None,
    *,
    required_speedup: float | None = None,
    interrupted: bool = False,
) -> CommandReport:
    """All runs of one command. `over_runs`, None of a command that repeats nothing, must reach what is required.

    `interrupted`: while no run was under way.
    """
    code = first_in_order([*(run.exit_code for run in runs), *([ExitCode.INTERRUPTED] if interrupted else [])])
    finals = (sweep.final for sweep in sweeps if sweep.final)
    if any(final.exit_code == ExitCode.INTERRUPTED for final in finals):
        code = ExitCode.INTERRUPTED  # whatever else a final comes to: the points have been measured
    reason = None
    if over_runs is not None and required_speedup is not None and code == ExitCode.MEASURED:
        code, reason = gate(over_runs, required_speedup)
    return CommandReport(
        outcome=conclusion_of(code),
        exit_code=code,
        reason=reason,
        environment=environment,
        runs=runs,
        sweeps=list(sweeps),
        over_runs=list(over_runs or ()),
    )
