"""Everything that the faces show of a run, in 80 columns: what of it may break on odd events,
breaks here.
"""

import io
import unicodedata

import msgspec

from gpulab.catalog.catalog import ScenarioRow
from gpulab.catalog.view import mark
from gpulab.features.live.progress import one_line
from gpulab.headless.output import PlainConsole
from gpulab.headless.run import run_line
from gpulab.report.live import live_run
from gpulab.show.parts import Shown, Target, result
from gpulab.show.short_result import short_result
from gpulab.show.view import failures
from gpulab.tui.panels.tabs import TABS, Selection, changing, content

ROW = ScenarioRow(name="x")
SIZE = (80, 24)


def show(run):
    """Draw it. AssertionError where its events were given up, or where a terminal would be driven
    by what it shows.
    """
    report = run.report
    codes = [failure.cause.code for failure in report.failures]
    assert "events_make_no_sense" not in codes, report.failures[0].cause.values
    msgspec.json.encode(report)
    console = PlainConsole(io.StringIO())
    console.width = 80
    for name in TABS:
        changing(run)
        console.print(content(name, Selection(ROW, "", run, SIZE)))
    for shown in (result(Shown(report, Target.TERMINAL)), short_result(report), failures(report)):
        console.print(shown)
    console.print(one_line(live_run(report, run.state)), run_line(report, 1, 2), mark(report).text)
    text = console.file.getvalue()
    assert not [mark for mark in set(text) if unicodedata.category(mark)[0] == "C" and mark != "\n"]
