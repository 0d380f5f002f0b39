"""A run under way: where it is, in words, and above the panels of a terminal."""

from __future__ import annotations

from gpulab.core.statuses import Stage
from gpulab.core.units import about, plus_minus, seconds, with_interval
from gpulab.draw.blocks import Block, Group, Text
from gpulab.features.live.activity import activity, time_left
from gpulab.features.live.narrowing import first_interval
from gpulab.features.live.screen import live_view
from gpulab.report.live import LiveReport
from gpulab.report.report import RunReport
from gpulab.stats.verdicts import shown


def headline(report: RunReport) -> str:
    """Return what is going on, and since when."""
    if not report.scenario:
        return "starting"
    return f"{report.scenario} · {stage(report)} · {report.progress.elapsed_s:.0f} s"


def subject(report: RunReport) -> str:
    """Return what runs, beside a view of how far it is."""
    params = " ".join(f"{name}={value}" for name, value in report.params.items())
    device = report.device.name if report.device else ""
    return " · ".join(
        filter(None, (report.scenario, device, params, f"{report.progress.elapsed_s:.0f} s"))
    )


def stage(report: RunReport) -> str:
    """Return where the run is: what it does, or how far the measurement is."""
    progress = report.progress
    if progress.stage == Stage.MEASURE and progress.planned_processes:
        left = time_left(progress)
        return (
            f"process {progress.process} (of {progress.planned_processes} or more), round "
            f"{progress.rounds}{left and f', {left}'}"
        )
    if progress.stage == Stage.MEASURE and progress.planned_epochs:
        return (
            f"build {progress.epoch} (of {progress.planned_epochs} or more), round "
            f"{progress.rounds}"
        )
    place = activity(progress)
    return f"verdict final · {place}" if progress.verdict_stands else place


def verdict_lines(report: RunReport) -> list[str]:
    """The verdict, for a log that cannot be redrawn, before the runs and the profile that explain
    it.
    """
    lines = []
    for comparison in report.comparisons:
        speedup = comparison.speedup
        interval = f" {with_interval(speedup)}" if speedup and speedup.has_interval else ""
        against = ""
        if comparison.against != report.baseline:
            against = f" against {comparison.against}"
        said = f"{report.scenario} · {comparison.variant}{against}{interval}"
        lines.append(f"{said}: {shown(comparison).words}")
    return lines


def progress_view(run: LiveReport, *, width: int, height: int) -> Block:
    """The headline, and below it the panels, where there are variants for them."""
    heading = Text(headline(run.report), style="bold", no_wrap=True)
    if not run.report.variants:
        return heading
    return Group(heading, live_view(run, width=width, height=height - 1))


def one_line(run: LiveReport) -> str:
    """The headline with the times so far: for a log that cannot be redrawn."""
    report = run.report
    parts = [headline(report)]
    for variant in report.variants:
        time, comparison = variant.time_s, report.comparison(variant.name)
        if report.progress.stage != Stage.MEASURE or time is None:
            continue
        spread = plus_minus(time)
        speedup = ""
        if comparison and comparison.speedup is None:
            at_least = first_interval(run.ratios(comparison)[:-1])
            speedup = about(report.preliminary_speedup(comparison))
            speedup += at_least and f" ({at_least})"
        parts.append(" ".join(filter(None, (variant.name, seconds(time.value), spread, speedup))))
    return ", ".join(parts)
