"""Pictures of the app as the text of its cells, without styles, on two sizes of a terminal."""

import asyncio
from datetime import UTC, datetime, timedelta

from journey import choose, flat, type_in, until
from msgspec.structs import replace
from recorded import recorded_path, run_file

from gpulab.core.run_file import read_run_file
from gpulab.options import Options
from gpulab.report.build import build_report, fold_all
from gpulab.report.past import past_run
from gpulab.session.playback import Playback
from gpulab.session.store import Store
from gpulab.tui.app import LabApp
from gpulab.tui.panels.catalog import WIDE
from gpulab.tui.screens.lab import LabScreen

SIZES = ((80, 24), (120, 40))
LESSON, EARLIER = "precision", ("precision-h100-1", "precision-h200")
SCREENS = {
    "list": [],
    "filter": ["slash", "s", "o", "f", "t"],
    "course": ["c"],
    "lesson": ["enter"],
    "code": ["2"],
    "keys": ["question_mark"],
    "parameters": ["p"],
    "prediction": ["g"],
    "history": ["h"],
    "compare": ["h", "space", "down", "space", "c"],
    "earlier run": ["h", "enter"],
    "exercise": [],
}
"""Keys in the list, the cursor on a lesson that has earlier runs."""
REPLAYS = {
    "replay half-way": ("h200/pinned_memory", []),
    "replay lesson": ("h200/pinned_memory", ["1"]),
    "replay code": ("h200/pinned_memory", ["2"]),
    "replay result": ("h200/pinned_memory", ["3"]),
    "replay roofline": ("h200/pinned_memory", ["4"]),
    "replay log": ("h200/pinned_memory", ["5"]),
    "replay checklist": ("h200/pinned_memory", ["6"]),
    "replay operations": ("h200/cold_start", ["o"]),
    "replay help": ("h200/pinned_memory", ["question_mark"]),
    "replay failed": ("raises", ["3"]),
    "replay function": ("function", ["3"]),
}
"""Keys at the end of a replay."""
NAMES = [f"{name} {width}x{height}" for name in (*SCREENS, *REPLAYS) for width, height in SIZES]


def text_of(name, folder):
    screen, _, size = name.rpartition(" ")
    width, height = map(int, size.split("x"))
    taken = _replay if screen in REPLAYS else _lab
    return asyncio.run(taken(screen, folder, (width, height)))


async def _lab(screen, folder, size):
    _enter_earlier_runs(folder)
    paths = ()
    if screen == "exercise":
        from gpulab.cli import main

        main(["--new", "--exercise", "row_norms"])
        paths = (folder / "row_norms.py",)
    app = LabApp(paths, Options(device="cpu", telemetry="off"), ascii_only=False)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, LabScreen) and app.screen.complete)
        if screen != "exercise":
            await _still(pilot)
            await choose(pilot, LESSON)
            if size[0] >= WIDE:  # its text is drawn a moment later
                await until(pilot, lambda: "Precision: fewer bits" in flat(pilot))
        for key in SCREENS[screen]:
            await _press(pilot, key)
        return await _still(pilot, looks=8)  # a footer waits until the cursor rests


async def _replay(screen, folder, size):
    run, keys = REPLAYS[screen]
    playback = Playback(run_file(run, folder) if "/" not in run else recorded_path(run))
    playback.toggle()
    app = LabApp(ascii_only=False, replay=playback)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, LabScreen) and app.screen.complete)
        await type_in(pilot, ":50%" if "half-way" in screen else ":100%")
        await pilot.press("enter")
        if "half-way" not in screen:
            await until(pilot, lambda: playback.at_end)
        for key in keys:
            await _press(pilot, key)
        return await _still(pilot, looks=8)  # a footer waits until the cursor rests


async def _press(pilot, key):
    await _still(pilot)
    await pilot.press(key)


def _enter_earlier_runs(folder):
    """Two recorded runs, as those of an hour and of two hours ago."""
    with Store() as store:
        for hours, name in zip((2, 1), EARLIER, strict=True):
            path = run_file(name, folder)
            state = fold_all(read_run_file(path).events)
            at = (datetime.now(UTC) - timedelta(hours=hours, minutes=5)).isoformat()
            store.add_run(replace(past_run(state, build_report(state, str(path))), at=at))


async def _still(pilot, looks=4):
    """The text of the screen once it has been the same for some looks."""
    seen = []
    for _ in range(200):
        await pilot.pause(0.06)
        rows = pilot.app.screen._compositor.render_strips()
        seen.append("\n".join(row.text for row in rows))
        if seen[-looks:] == [seen[-1]] * looks:
            break
    return seen[-1]
