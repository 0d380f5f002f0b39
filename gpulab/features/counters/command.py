"""`--nsys FILE` of a run: some steps of its fastest variant under Nsight Systems."""

from __future__ import annotations

from collections.abc import Sequence
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from gpulab.core.counted_steps import StepsJob
from gpulab.core.jobs import Measure, RunRequest, TimeFunctions
from gpulab.features.counters.nsys import NsysReport
from gpulab.report.report import RunReport
from gpulab.scenario import CONTROL
from gpulab.session.drive import Interrupts
from gpulab.session.history import History
from gpulab.session.worker_process import worker_environment

_RECORDED_S, _FEWEST, _MOST = 0.25, 3, 200
"""How long the steps that are recorded take in all, and how many they are."""


def record_steps(
    nsys: NsysReport, request: RunRequest | RunReport, report: RunReport
) -> Sequence[str]:
    """Record steps of the fastest variant, once all is measured; what came of it, in lines."""
    times = {time.value: each.name for each, time in report.timed if each.name != CONTROL}
    job = request.job if isinstance(request, RunRequest) else None
    if not isinstance(request, RunRequest) or not isinstance(job, Measure | TimeFunctions):
        return ["nsys made no report: nothing was run"]
    if not times:
        return ["nsys made no report: nothing was timed"]
    fastest = min(times)
    history = History(request)
    history.read()
    with TemporaryDirectory(prefix="gpulab-") as folder, Interrupts() as interrupts:
        asked = StepsJob(
            job=replace(job, folder=folder),
            variants=[times[fastest]],
            choices=list(history.choices),
            steps=max(_FEWEST, min(_MOST, int(_RECORDED_S / fastest))),
        )
        return nsys.of_steps(asked, worker_environment(asked.job), interrupts.stop_with)
