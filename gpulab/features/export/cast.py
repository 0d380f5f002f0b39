"""The replay of a run as an asciicast (version 2): the panels of its screen as they changed, with
the stages as markers.

Panels are drawn from the events by the same code as on the screen, without the app around them:
what changed is written, at the times at which it did.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from io import StringIO
from itertools import groupby
from operator import itemgetter

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console, Group, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from gpulab.core.events import Event, StageStarted
from gpulab.core.text import one_line
from gpulab.features.export.record import Record
from gpulab.features.live.panel import live_run
from gpulab.features.live.screen import live_view, shown_stage
from gpulab.report.build import build_report, new_state
from gpulab.report.program_result import program_result
from gpulab.report.report import RunReport
from gpulab.report.results import OnScreen, result

WIDTH, HEIGHT = 120, 40
_TICK_S = 0.5
_MOST_FRAMES = 240
"""Of a long run: its ticks are longer then."""
_IDLE_S = 2.0
"""Longest time without a change, as players are asked to keep it."""
_AT_END_S = 5.0
_CLEAR = "\x1b[2J\x1b[?25l"

Cell = tuple[str, Style | None]
_EMPTY_ROW: list[Cell] = [(" ", None)] * WIDTH
Line = tuple[float, str, str]
"""Seconds since the start, the kind, and what was written, or the name of a marker."""


def cast(record: Record) -> str:
    """The whole file: a header, then a line of JSON for each change."""
    lines = list(_lines(record))
    header = {
        "version": 2,
        "width": WIDTH,
        "height": HEIGHT,
        "duration": round(lines[-1][0], 3),
        "idle_time_limit": _IDLE_S,
        "title": one_line(f"gpulab: {record.report.scenario}"),
        "env": {"TERM": "xterm-256color"},
    }
    if record.report.at:
        header["timestamp"] = int(datetime.fromisoformat(record.report.at).timestamp())
    written = [json.dumps(header)]
    written += [json.dumps([round(at, 3), kind, text]) for at, kind, text in lines]
    return "\n".join(written) + "\n"


def _lines(record: Record) -> Iterator[Line]:
    report, events = record.report, record.events
    terminal = _Terminal()
    yield 0.0, "o", _CLEAR
    last = 0.0
    if events:
        start = events[0].t
        for event_or_frame in _frames(events, report):
            at, kind, content = event_or_frame
            last = at - start
            if isinstance(content, str):
                yield last, kind, content
            elif changed := terminal.changes(content):
                yield last, kind, changed
    yield last, "m", "result"
    yield last, "o", terminal.changes(_final(record))
    yield last + _AT_END_S, "o", "\x1b[?25h"


def _frames(
    events: Sequence[Event], report: RunReport
) -> Iterator[tuple[float, str, RenderableType]]:
    """(time, "o", what the screen shows) at every tick, and (time, "m", name) of each stage."""
    state = new_state()
    start, end = events[0].t, events[-1].t
    tick_s = max(_TICK_S, (end - start) / _MOST_FRAMES)
    due, stage = start, ""
    for event in events:
        if event.t >= due and state.request is not None:
            due = event.t + tick_s
            so_far = build_report(state, report.run_file, live=True, now=event.t)
            view = live_view(live_run(so_far, state), width=WIDTH, height=HEIGHT - 1)
            yield event.t, "o", Group(_heading(so_far), view)
        state.fold(event)
        if isinstance(event, StageStarted) and shown_stage(event.stage) != stage:
            stage = shown_stage(event.stage)
            yield event.t, "m", stage


def _heading(report: RunReport) -> Text:
    device = f" · {report.device.name}" if report.device else ""
    return Text(f"gpulab ▸ {report.scenario}{device}", "bold", no_wrap=True, overflow="ellipsis")


def _final(record: Record) -> RenderableType:
    report = record.report
    if report.program is not None:
        return Group(_heading(report), program_result(report))
    name = report.run_file.rpartition("/")[2]
    on_screen = OnScreen(record.live, WIDTH, name)
    return Group(_heading(report), result(report, screen=on_screen))


class _Terminal:
    """What stands on it."""

    def __init__(self) -> None:
        self._console = Console(
            file=StringIO(),
            width=WIDTH,
            height=HEIGHT,
            force_terminal=True,
            force_jupyter=False,
            color_system="standard",
        )
        self._shown = [_EMPTY_ROW] * HEIGHT

    def changes(self, content: RenderableType) -> str:
        """What has to be written for a content to stand there; empty where it does."""
        rows = self._drawn(content)
        written = [
            change
            for row, (cells, before) in enumerate(zip(rows, self._shown, strict=True), start=1)
            if (change := _change(row, cells, before))
        ]
        self._shown = rows
        return "".join(written)

    def _drawn(self, content: RenderableType) -> list[list[Cell]]:
        lines = self._console.render_lines(content)[:HEIGHT]
        rows = [_cells(line) for line in lines]
        return rows + [_EMPTY_ROW] * (HEIGHT - len(rows))


def _cells(line: Sequence[Segment]) -> list[Cell]:
    """As many as the screen is wide; the second one of a wide character is empty."""
    cells: list[Cell] = []
    for segment in line:
        for character in segment.text:
            cells.append((character, segment.style))
            if cell_len(character) == 2:
                cells.append(("", segment.style))
    return [*cells, *_EMPTY_ROW][:WIDTH]


def _change(row: int, cells: Sequence[Cell], before: Sequence[Cell]) -> str:
    """From the first to the last cell of a row that changed."""
    changed = [place for place in range(WIDTH) if cells[place] != before[place]]
    if not changed:
        return ""
    first, last = changed[0], changed[-1]
    while first and not cells[first][0]:
        first -= 1
    written = [f"\x1b[{row};{first + 1}H"]
    for style, group in groupby(cells[first : last + 1], key=itemgetter(1)):
        text = "".join(character for character, _ in group)
        written.append(style.render(text, color_system=ColorSystem.STANDARD) if style else text)
    return "".join(written)
