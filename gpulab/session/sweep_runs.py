"""A sweep that is under way: a run for each value, one after the other, then the final."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpulab.catalog.catalog import Entry
from gpulab.protocol.jobs import RunRequest
from gpulab.report.command_report import Sweep
from gpulab.report.exit_codes import ExitCode
from gpulab.report.report import RunReport
from gpulab.report.sweeps import finalists_of, sweep_of
from gpulab.session.launch import Launch, sweep_launches
from gpulab.session.run_files import default_path
from gpulab.session.settings import Settings
from gpulab.session.sweep_final import final_request


class SweepRuns:
    """`text` is `name=a,b,c`, a name, or nothing where the scenario has one sweep of its own. UsageError."""

    def __init__(self, entry: Entry, text: str, settings: Settings) -> None:
        self._settings = settings
        self._launch = Launch(entry)
        points = [launch.point for launch in sweep_launches(self._launch, text, settings) if launch.point]
        self.parameter = points[0][0] if points else ""
        self.values = [value for _, value in points]
        self._requests: list[RunRequest] = []
        self.reports: list[RunReport] = []
        """Of the points, in the order of their values."""
        self.final: RunReport | None = None

    @property
    def next_point(self) -> Settings | None:
        """Those of the next run; None after the last value, or where a run was interrupted."""
        interrupted = any(report.exit_code == ExitCode.INTERRUPTED for report in self.reports)
        if interrupted or len(self.reports) >= len(self.values):
            return None
        value = self.values[len(self.reports)]
        return replace(self._settings, chosen={**self._settings.chosen, self.parameter: value})

    @property
    def final_request(self) -> RunRequest | None:
        """Of the final; None where there is nothing to tell apart, or not every value has run."""
        if self.final is not None or len(self.reports) < len(self.values) or self.next_point is not None:
            return None
        return final_request(self._requests, self.parameter, finalists_of(self.parameter, self.reports))

    @property
    def final_path(self) -> Path:
        """A new one for the run file of the final."""
        return default_path(replace(self._launch, point=("final", self.parameter)).label)

    @property
    def in_final(self) -> bool:
        """Every value has run."""
        return len(self.reports) == len(self.values)

    def add(self, request: RunRequest | None, report: RunReport) -> None:
        """What the run that has ended measured."""
        if self.in_final:
            self.final = report
            return
        self.reports.append(report)
        self._requests += [request] if request else []

    @property
    def sweep(self) -> Sweep:
        return sweep_of(self.parameter, self.reports, self.final)
