"""How far a run is: its stages in one line, the one under way in capitals, with a bar where its end is known."""

from __future__ import annotations

from gpulab.protocol.statuses import Stage
from gpulab.report.report import RunReport
from gpulab.views.live.area import Area, bar
from gpulab.views.live.panel import LiveRun

_SHOWN = {
    Stage.START: "start",
    Stage.CHECK: "check",
    Stage.MEASURE: "measure",
    Stage.RE_CHECK: "re-check",
    Stage.SOLO_RUN: "alone",
    Stage.CEILINGS: "ceilings",
    Stage.PROFILE: "profile",
}
_AS = {
    Stage.LOAD: Stage.START,
    Stage.BUILD: Stage.CHECK,
    Stage.TUNE: Stage.CHECK,
    Stage.CALIBRATE: Stage.CHECK,
    Stage.WARM_UP: Stage.CHECK,
    Stage.COUNT: Stage.CHECK,
    Stage.TEARDOWN: Stage.PROFILE,
    Stage.END: Stage.PROFILE,
}
"""Stages that are over before one can read their names."""
_CELLS = 14


def draw_stages(run: LiveRun, area: Area) -> None:
    progress = run.report.progress
    now = _AS.get(progress.stage, progress.stage)
    column, passed = 0, True
    for stage, words in _SHOWN.items():
        if stage == now:
            passed, text = False, _under_way(run.report, area)
            area.put(0, column, text, "bold")
            column += len(text) + 1
        elif area.width - column > len(words):
            area.put(0, column, words, "" if passed else "dim")
            column += len(words) + 1


def _under_way(report: RunReport, area: Area) -> str:
    progress = report.progress
    words = _SHOWN[_AS.get(progress.stage, progress.stage)].upper()
    if not report.under_way:
        return str(report.outcome).upper()
    if progress.stage == Stage.MEASURE and progress.planned_processes:
        left_s = progress.remaining_s or 0.0
        share = progress.process / (progress.process + max(progress.planned_processes - progress.process, 0) + 1)
        filled = bar(share, _CELLS, area.glyphs)
        empty = "░" * (_CELLS - len(filled))
        left = f", {left_s:.0f} s left" if left_s >= 1 else ""
        return f"▸{words} {filled}{empty} process {progress.process}{left}"
    return " ".join(part for part in (f"▸{words}", progress.variant, progress.detail) if part)
