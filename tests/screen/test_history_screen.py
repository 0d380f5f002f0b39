"""The history: every run of this machine, looked for, opened again, and compared."""

from datetime import UTC, datetime, timedelta
from time import monotonic

import pytest
from journey import flat, shown, until, visit
from msgspec.structs import replace
from recorded import run_file

from gpulab.protocol.run_file import read_run_file
from gpulab.report.build import build_report
from gpulab.report.past_run import past_run
from gpulab.report.state import fold_all
from gpulab.session.history_index import HistoryIndex
from gpulab.session.run_files import state_folder
from gpulab.tui.panels.history_list import HistoryList


@pytest.fixture
def past(tmp_path, monkeypatch):
    """Two recorded runs, entered as those of an hour and of two hours ago."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    index, runs = HistoryIndex(state_folder()), []
    for hours, name in ((2, "precision-h100-1"), (1, "version-2/precision-h200")):
        path = run_file(name, tmp_path)
        state = fold_all(read_run_file(path).events)
        at = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
        runs.append(replace(past_run(state, build_report(state, str(path))), at=at, path="precision.py"))
        assert index.add(runs[-1])
    return runs


def rows(pilot):
    runs = pilot.app.screen.query_one(HistoryList)
    return [runs.render_line(y).text.rstrip() for y in range(runs.size.height)]


async def open_history(pilot):
    await pilot.press("h")
    await until(pilot, lambda: pilot.app.screen.query(HistoryList) and "precision" in rows(pilot)[0])


def test_runs_stand_newest_first_with_what_they_came_to(past):
    async def journey(pilot):
        await open_history(pilot)
        assert rows(pilot)[0].split()[:6] == [">", "1", "h", "precision", "29.5x", "faster"]
        assert rows(pilot)[1].split()[:3] == ["2", "h", "precision"]
        assert "its 2 runs here, the newest last" in flat(pilot)
        assert "2 runs" in shown(pilot).splitlines()[0]
        await pilot.press("down")
        await until(pilot, lambda: rows(pilot)[1].startswith(">"))
        await pilot.press("escape")
        await until(pilot, lambda: "ready" in shown(pilot))

    visit(journey)


def test_one_is_opened_again_and_two_are_compared(past):
    async def journey(pilot):
        await open_history(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "NVIDIA H200" in flat(pilot) and "99 % interval" in flat(pilot))
        await pilot.press("escape", "c")
        await until(pilot, lambda: "space marks two runs" in flat(pilot))
        await pilot.press("space", "down", "space")
        assert rows(pilot)[0][1] == "A"
        assert rows(pilot)[1][1] == "B"
        await pilot.press("c")
        await until(pilot, lambda: "what may be said" in flat(pilot) or "time of a step, one axis" in flat(pilot))
        assert "NVIDIA H100" in flat(pilot)
        assert "NVIDIA H200" in flat(pilot)
        await pilot.press("escape", "escape")
        await until(pilot, lambda: "ready" in shown(pilot))

    visit(journey, size=(120, 40))


def test_a_run_whose_file_is_gone_is_listed_and_says_so(past, tmp_path):
    for path in tmp_path.glob("*.jsonl"):
        path.unlink()

    async def journey(pilot):
        await open_history(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "No such file" in flat(pilot))
        assert "precision" in rows(pilot)[0]

    visit(journey, size=(120, 40))


def test_search_as_one_types(past):
    async def journey(pilot):
        await open_history(pilot)
        await pilot.press("slash", *"h100")
        await until(pilot, lambda: "1 of 2 runs" in shown(pilot))
        assert "2 h" in rows(pilot)[0]
        await pilot.press("enter", "escape")
        await until(pilot, lambda: "gpulab · history" in shown(pilot) and "2 runs" in shown(pilot))

    visit(journey)


def test_many_runs_are_listed_and_searched_at_once(past, monkeypatch):
    """Only lines in sight are drawn: ten thousand cost about what a hundred do."""
    took = {}
    for count in (100, 10_000):
        many = [replace(past[place % 2], at=f"2026-01-01T00:00:{place % 60:02}+00:00") for place in range(count)]
        monkeypatch.setattr(HistoryIndex, "runs", lambda self, many=many: many)

        async def journey(pilot, count=count):
            await open_history(pilot)
            began = monotonic()
            await pilot.press("slash", *"h100")
            await until(pilot, lambda: f"{count // 2:,} of" in shown(pilot) or f"{count // 2} of" in shown(pilot))
            took[count] = monotonic() - began

        visit(journey)
    assert took[10_000] < 10 * took[100] + 1.0
