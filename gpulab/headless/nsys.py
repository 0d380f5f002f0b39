"""`--run SCENARIO --nsys FILE`: steps of its fastest variant under nsys, once all is measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from gpulab.core.jobs import Measure, RunRequest, TimeFunctions
from gpulab.features import needed
from gpulab.headless.output import Terminal
from gpulab.headless.run_plan import PlannedRun
from gpulab.options import UsageError
from gpulab.report.report import RunReport
from gpulab.scenario import CONTROL
from gpulab.session.drive import Interrupts
from gpulab.session.history import History
from gpulab.session.worker_process import worker_environment

_SHOWN_S, _FEWEST, _MOST = 0.25, 3, 200
"""How long the steps are that a report shows, and how many."""


class RecordingByNsys:
    """The report of one run that is planned; UsageError where there are several, or no nsys."""

    def __init__(self, planned: Sequence[PlannedRun], file: Path) -> None:
        if len(planned) > 1:
            raise UsageError("--nsys FILE is of one run: name one scenario")
        self._request = planned[0].request
        self._nsys = needed("counters.nsys").NsysReport(file)

    def record(self, report: RunReport, terminal: Terminal) -> None:
        """Record, and say what came of it; nothing of a run that timed nothing."""
        request = self._request
        times = {time.value: each.name for each, time in report.timed if each.name != CONTROL}
        if not isinstance(request, RunRequest) or not times:
            return
        job = request.job
        assert isinstance(job, (Measure, TimeFunctions))
        history = History(request)
        history.read()
        fastest = min(times)
        with TemporaryDirectory(prefix="gpulab-") as folder, Interrupts() as interrupts:
            job = replace(job, folder=folder)
            steps = needed("counters.job").StepsJob(
                job=job,
                variants=[times[fastest]],
                choices=list(history.choices),
                steps=max(_FEWEST, min(_MOST, int(_SHOWN_S / fastest))),
            )
            lines = self._nsys.of_steps(steps, worker_environment(job), interrupts.stop_with)
        terminal.say(*lines)
