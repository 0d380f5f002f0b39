"""A replay is the screen of the run: the same cells at every moment of it, and nothing that runs."""

import asyncio
import subprocess
import sys

import pytest
from found import finding
from journey import Tape, choose, flat, idle, shown, until, visit
from recorded import recorded_path, run_file
from textual.events import Key

from gpulab.catalog.catalog import ScenarioRow
from gpulab.catalog.recordings import recording
from gpulab.catalog.view import listing
from gpulab.core.events import Samples
from gpulab.core.run_file import read_run_file
from gpulab.session.playback import Playback
from gpulab.session.run import FileSource
from gpulab.session.run_files import runs_folder, state_folder
from gpulab.session.saved import entry_of
from gpulab.tui import status
from gpulab.tui.app import LabApp
from gpulab.tui.derived import ChooseScreen
from gpulab.tui.screens.history import HistoryScreen
from gpulab.tui.screens.lab import LabScreen
from gpulab.tui.screens.replay import ReplayScreen

_ELSEWHERE = """
import asyncio, os, signal, sys
from pathlib import Path

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "fcntl", "resource", "pynvml"}:
            raise ImportError(f"{name} is not for this system")

sys.meta_path.insert(0, Refuse())
for name in ("pipe2", "fork", "pidfd_open", "sched_getaffinity"):
    delattr(os, name)
del signal.pidfd_send_signal
from gpulab.session.playback import Playback
from gpulab.tui.app import LabApp

async def go():
    playback = Playback(Path(sys.argv[1]))
    playback.toggle()
    playback.seek(playback.duration_s)
    app = LabApp(ascii_only=False, replay=playback)
    async with app.run_test() as pilot:
        text = ""
        while "FASTER" not in text:
            await pilot.pause(0.05)
            text = "\\n".join(pane.text for pane in app.screen.query("TextPane, Pane"))
        print(text)

asyncio.run(go())
"""
"""Python on another system than Linux, without torch."""
LABELS = slice(1, -1)
"""All rows but the first and the last: position and keys of the replay."""


def replayed(journey, path, size=(80, 24)):
    """Run `journey(pilot)` in a replay that is paused at its start."""

    async def go():
        playback = Playback(path)
        playback.toggle()
        app = LabApp(ascii_only=False, replay=playback)
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: isinstance(app.screen, LabScreen) and app.screen.complete)
            await until(pilot, lambda: "3 Result" in cells(pilot)[1])
            await journey(pilot)

    asyncio.run(go())


def cells(pilot):
    """Every row of the screen."""
    rows = pilot.app.screen._compositor.render_strips()
    return [row.text for row in rows]


async def at_time(pilot, text, then):
    """Type a time to go to, all at once as on a slow line; `then`: what the first row says."""
    for character in f":{text}":
        pilot.app.post_message(Key({":": "colon"}.get(character, character), character))
    await pilot.press("enter")
    await until(pilot, lambda: then in cells(pilot)[0])


@pytest.mark.parametrize(
    ("size", "tabs"),
    [
        ((80, 24), "3"),
        pytest.param((80, 24), "23456", marks=pytest.mark.slow, id="all-tabs"),
        pytest.param((120, 40), "23456", marks=pytest.mark.slow, id="wide"),
    ],
)
def test_at_its_end_it_has_the_cells_of_the_run_that_was_live(tmp_path, size, tabs):
    """In the first and the last row a replay has its position and its keys; only the page of the
    lesson says besides where it was recorded.
    """
    path = run_file("h200/precision", tmp_path)
    seen = {"live": [], "replay": []}

    async def look(pilot, kind):
        words = {
            "2": "fp32 · the baseline",
            "3": "FASTER",
            "4": "ridge",
            "5": "printed nothing",
            "6": "of a step of fp32 go",
        }
        for key in tabs:
            await pilot.press(key)
            await until(pilot, lambda key=key: words[key] in shown(pilot))
            seen[kind].append(cells(pilot)[LABELS])

    async def live(pilot):
        await until(pilot, lambda: "FASTER" in shown(pilot))
        if size[0] > 112:
            await pilot.press("left_square_bracket")  # which hides the list
        await look(pilot, "live")

    async def replay(pilot):
        await at_time(pilot, "100%", "ended 1x 0:50/0:50")
        await until(pilot, lambda: "FASTER" in shown(pilot))
        await look(pilot, "replay")

    async def in_the_lab():
        entry = entry_of(read_run_file(path).events[0].request)
        app = LabApp(
            ascii_only=False,
            entries=[entry],
            opens=entry.name,
            starter=lambda *_: FileSource(path),
            read_only="no",
        )
        async with app.run_test(size=size) as pilot:
            await live(pilot)

    asyncio.run(in_the_lab())
    replayed(replay, path, size)
    assert seen["replay"] == seen["live"]


@pytest.mark.slow
def test_every_moment_looks_alike_however_one_comes_to_it():
    path = recorded_path("older/pinned_memory")
    seen = {}

    moments = {"17": "0:17/", "0:36": "0:36/", "100%": "ended"}

    async def see(pilot, time):
        await at_time(pilot, time, moments[time])
        looks = [None]
        while looks[-8:] != [looks[-1]] * 8:  # it is laid out once more, in its room
            await pilot.pause(0.05)
            looks.append(cells(pilot)[LABELS])
        return looks[-1]

    async def once(pilot):
        for time in moments:
            seen[time] = await see(pilot, time)
        assert len({tuple(rows) for rows in seen.values()}) == len(moments)

    async def again(pilot):
        for time in reversed(moments):
            assert await see(pilot, time) == seen[time], time

    replayed(once, path)
    replayed(again, path)


def test_keys_move_it_while_it_is_paused_and_none_runs_anything(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    async def journey(pilot):
        def line():
            return cells(pilot)[0]

        assert "paused 1x 0:00/1:19" in line()
        assert "replay H200, 2026-11-23" in line()
        await pilot.press(*["right_curly_bracket"] * 3)
        assert "paused 1x 0:06/1:19" in line()
        assert "warming up pageable" in flat(pilot)
        await pilot.press("left_curly_bracket")
        assert "building pageable" in flat(pilot)
        await pilot.press("shift+right", "shift+right", "shift+left")
        assert "0:15/1:19" in line()
        await pilot.press("full_stop")
        assert "paused" in line()
        await pilot.press("greater_than_sign", "greater_than_sign", "less_than_sign")
        assert "paused 2x" in line()
        for key in ("r", "s"):
            await pilot.press(key)
            assert "a replay runs nothing: gpulab --run pinned_memory measures it here" in line()
        await at_time(pilot, "x", "x: write a time such as 90, 1:30 or 45%")
        await pilot.press("colon", "escape", "y")
        assert "copied the result, " in line()
        monkeypatch.chdir(tmp_path)
        pilot.app.action_page()
        assert "pinned_memory" in (tmp_path / "pinned_memory.html").read_text()
        await pilot.press("space")
        assert "playing 2x" in line()
        await pilot.press("end")
        assert "ended 2x 1:19/1:19" in line()
        await pilot.press("home")
        assert "paused 2x 0:00/1:19" in line()
        await at_time(pilot, "100%", "ended 2x 1:19/1:19")
        await pilot.press("space")
        assert "playing 2x 0:00/1:19" in line()
        await pilot.press("question_mark", "pagedown")
        assert "go to a time: 90, 1:30, 45%" in flat(pilot)
        assert "run it" not in flat(pilot)

    replayed(journey, recorded_path("older/pinned_memory"))
    assert not state_folder().exists()


def test_it_opens_from_a_lesson_and_from_the_history_and_esc_comes_back(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    runs_folder().mkdir(parents=True)
    kept = run_file("h200/precision", runs_folder())

    async def journey(pilot):
        await choose(pilot, "pinned_memory")
        await pilot.press("enter", "end")
        assert "made on H200: v replays it (gpulab --replay pinned_memory)" in flat(pilot)
        await pilot.press("v")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        await until(pilot, lambda: "replay H200" in shown(pilot))
        await pilot.press("r")
        assert "a replay runs nothing" in flat(pilot)
        await pilot.press("z", "escape", "escape")
        assert not isinstance(pilot.app.screen, ReplayScreen)
        assert idle(pilot)
        await pilot.press("h")
        await until(pilot, lambda: "1 run" in flat(pilot) and "fp8 29.6x" in flat(pilot))
        await pilot.press("v")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        await until(pilot, lambda: "replay H200" in shown(pilot))
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, HistoryScreen)
        assert list(runs_folder().iterdir()) == [kept]

    visit(journey)


def test_of_a_lesson_that_ran_here_v_asks_which_run(tmp_path):
    tape = Tape(run_file("h200/precision", tmp_path), lambda event: isinstance(event, Samples))
    tape.go_on()

    async def journey(pilot):
        await pilot.press("r")
        await until(pilot, lambda: idle(pilot))
        await pilot.press("v")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseScreen))
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReplayScreen))
        assert pilot.app.screen.playback.path == recording("batched_matmul")

    visit(journey, starter=lambda entry, settings: tape)


def test_where_a_lesson_cannot_run_its_page_and_the_message_offer_the_recording():
    row = ScenarioRow(name="x", missing=finding("no_gpu"), recording="H200")
    offered = "There is a recording, made on H200: v replays it (gpulab --replay x)."
    assert offered in status.before_a_run(row).plain
    assert status.cannot_run("no GPU", row) == "no GPU; v replays a run on H200"
    alone = ScenarioRow(name="x", missing=finding("no_gpu"))
    assert "recording" not in status.before_a_run(alone).plain
    can_run = status.before_a_run(ScenarioRow(name="x", recording="H200"))
    assert "v replays it" in can_run.plain
    middle = status.in_the_middle(can_run, (40, 11)).plain.split("\n")
    assert "r runs it" in " ".join(middle[3:8])
    assert max(map(len, middle)) <= 40
    assert (
        "1 of these can be watched as recorded: gpulab --replay NAME" in listing([row, alone]).plain
    )


@pytest.mark.slow
def test_a_system_without_torch_and_linux_shows_a_run_of_a_gpu(tmp_path):
    """As far as Textual's driver for terminals is not that of Linux: it needs termios."""
    script = tmp_path / "elsewhere.py"
    script.write_text(_ELSEWHERE)
    arguments = (sys.executable, script, recorded_path("older/pinned_memory"))
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert "replay H200, 2026-11-23" in done.stdout
    assert "FASTER       pinned                6.20x  99 %: 5.85 to 6.53" in done.stdout


def test_a_run_without_its_source_or_of_no_scenario_opens_too(tmp_path):
    async def journey(pilot):
        await pilot.press("2")
        await until(pilot, lambda: "The run file does not have the source text." in flat(pilot))
        await pilot.press("1")
        await until(pilot, lambda: "The kernel written by hand." in flat(pilot))
        assert "recorded on NVIDIA H100 80GB HBM3 · torch 2.11.0" in flat(pilot)

    replayed(journey, run_file("h100/small_kernels", tmp_path))  # as a file of its own


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("calibration", "MEASURED"),
        ("function", "nothing is checked and nothing"),
        ("killed", "incomplete run file: killed or"),
    ],
)
def test_every_kind_of_run_can_be_replayed(name, words):
    async def journey(pilot):
        await at_time(pilot, "50%", "paused")
        await at_time(pilot, "100%", "ended")
        await until(pilot, lambda: words in flat(pilot))
        await pilot.press("1", "2", "4", "5", "6")

    replayed(journey, recorded_path(name))
