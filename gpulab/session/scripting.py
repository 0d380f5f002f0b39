"""Runs and reports for scripts and notebooks: the same that the command line gives."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path

from gpulab.report.report import RunReport
from gpulab.scenario import Param
from gpulab.session.drive import Interrupts, drive_to_end
from gpulab.session.launch import plan, single_launch, start
from gpulab.session.run import File, Run
from gpulab.session.run_files import default_path
from gpulab.session.settings import Settings


def run(
    scenario: str | Path,
    *,
    device: str | None = None,
    params: Mapping[str, Param] | None = None,
    threads: int = 1,
    time_s: float | None = None,
    width: float | None = None,
    seed: int | None = None,
    smoke: bool = False,
    quick: bool = False,
    timeout_s: float | None = None,
    telemetry: str | None = None,
    profile: str | None = None,
    trace: Path | str | None = None,
    memory: bool = False,
    output: Path | str | None = None,
    required_speedup: float | None = None,
) -> RunReport:
    """Measure a scenario by its name or file, or functions as FILE:function, and return its report
    once it has ended.

    Arguments are the flags of `gpulab --run` for one run; `output` is the run file, by default a
    new one under the user's state directory. A failure is a report too: its `exit_code` is that of
    the command line. Raises `UsageError` where the arguments make no sense, and
    `ScenarioNotFoundError`. An interrupt, as any exception, stops the run; its file keeps what was
    measured.
    """
    launch = single_launch(str(scenario))
    settings = Settings(
        device=device,
        chosen={name: str(value) for name, value in (params or {}).items()},
        threads=threads,
        time_s=time_s,
        width=width,
        required_speedup=required_speedup,
        seed=seed,
        smoke=smoke,
        timeout_s=timeout_s,
        telemetry=telemetry,
        quick=quick,
        profile=profile,
        trace=Path(trace) if trace is not None else None,
        memory=memory,
    )
    request = plan(launch, settings)
    if isinstance(request, RunReport):
        return request
    # Ctrl+C again, while the run is being stopped, must not leave its worker behind.
    with Interrupts((signal.SIGINT,), patience_s=None) as interrupts:
        source = start(request, Path(output) if output is not None else default_path(launch.label))
        interrupts.stop_with(source.cancel)
        return drive_to_end(source, required_speedup).report


def load(path: Path | str) -> RunReport:
    """The report of a run file: of a run that has ended, or as far as it came. RunFileError where
    it is none.
    """
    recorded = Run(File(Path(path)))
    recorded.poll()
    return recorded.report
