"""A sweep that is under way: a run for each value, then the final of the points that may be the
best.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from msgspec.structs import replace

from gpulab.catalog.catalog import Entry
from gpulab.core.jobs import Measure, RunRequest, VariantInfo
from gpulab.core.statuses import CeilingChoice, ExitCode, Per
from gpulab.core.units import plural
from gpulab.features.sweeps.report import Finalists, contenders_of, finalists_of, sweep_of
from gpulab.options import Options
from gpulab.report.commands import Sweep
from gpulab.report.report import RunReport
from gpulab.session.launch import Launch, sweep_launches


def final_request(
    points: Sequence[RunRequest], parameter: str, finalists: Finalists
) -> RunRequest | None:
    """The request of the final, from those of the points; None without finalists.

    Smoke runs have none: their times mean nothing.
    """
    jobs = [point.job for point in points if isinstance(point.job, Measure)]
    if not jobs or jobs[0].smoke or not finalists:
        return None
    job = jobs[0]
    infos = {info.name: info for info in job.subject.variants}
    first: dict[str, str] = {}
    variants: list[VariantInfo] = []
    for contender in contenders_of(parameter, finalists):
        against = first.get(contender.variant)
        first.setdefault(contender.variant, contender.name)
        variants.append(
            replace(
                infos[contender.variant],
                name=contender.name,
                function=contender.variant,
                params={parameter: contender.value},
                against=against,
                claim=None,
            )
        )
    subject = replace(
        job.subject,
        variants=tuple(variants),
        params={**job.subject.params, **variants[0].params},
        claim="",
        no_effect_reason="",
    )
    final = replace(
        job,
        subject=subject,
        per=Per.ITEM,
        roof=None,
        ladder=False,
        increasing_memory=False,
        solo_runs=False,
        ceilings=CeilingChoice.NONE,
        required_speedup=None,
        required_speedups={},
    )
    return replace(points[0], job=final, profile=None)


class SweepRuns:
    """The runs of one scenario that is swept: one for each value, and the final."""

    def __init__(
        self, launch: Launch, parameter: str, values: Sequence[str], settings: Options
    ) -> None:
        self._launch = launch
        self._settings = settings
        self.parameter = parameter
        self.values = list(values)
        self._requests: list[RunRequest] = []
        self.reports: list[RunReport] = []
        """Of the points, in the order of their values."""
        self.final: RunReport | None = None

    @classmethod
    def of_text(cls, entry: Entry, text: str, settings: Options) -> SweepRuns:
        """`text` is `name=a,b,c`, a name, or nothing where the scenario has one sweep of its own.
        UsageError.
        """
        launch = Launch(entry)
        points = [each.points[-1] for each in sweep_launches(launch, [text], settings)]
        parameter = points[0][0] if points else ""
        return cls(launch, parameter, [value for _, value in points], settings)

    @property
    def next_point(self) -> Options | None:
        """Those of the next run; None after the last value, or where a run was interrupted."""
        interrupted = any(report.exit_code == ExitCode.INTERRUPTED for report in self.reports)
        if interrupted or self.in_final:
            return None
        chosen = {**self._settings.chosen, self.parameter: self.values[len(self.reports)]}
        return dataclasses.replace(self._settings, chosen=chosen)

    @property
    def in_final(self) -> bool:
        """Every value has run."""
        return len(self.reports) == len(self.values)

    @property
    def final_request(self) -> RunRequest | None:
        """Return the final's request; None without finalists, or before every value has run."""
        if self.final is not None or not self.in_final:
            return None
        finalists = finalists_of(self.parameter, self.reports)
        return final_request(self._requests, self.parameter, finalists)

    @property
    def label(self) -> str:
        """Return the label of its scenario, as in names of files."""
        return self._launch.label

    @property
    def final_label(self) -> str:
        """The name of the final's run file."""
        return f"{self.label}-final-{self.parameter}"

    @property
    def announcement(self) -> str:
        """The line before the final."""
        request = self.final_request
        assert request
        assert isinstance(request.job, Measure)
        points = plural(len(request.job.subject.variants), "point")
        return f"{self._launch.label} final: {points} in turn"

    def add(self, request: RunRequest | None, report: RunReport) -> None:
        """Add the report of a run that has ended."""
        if self.in_final:
            self.final = report
            return
        self.reports.append(report)
        if request:
            self._requests.append(request)

    @property
    def sweep(self) -> Sweep:
        return sweep_of(self.parameter, self.reports, self.final)
