"""The screen over runs of other processes: what goes on is shown, and what becomes of it is said."""

import asyncio
import json
import sys
from time import time

import pytest
from conftest import wait_for
from journey import flat, listed, shown, until
from pseudo_terminal import Pty
from recorded import recorded_path
from textual.widgets import Static

from gpulab.core.events import RunStarted, Samples
from gpulab.core.run_file import RunFile, read_run_file
from gpulab.session import tail
from gpulab.session.active_runs import place_of
from gpulab.session.classroom import ClassFile, Place, Replayed
from gpulab.tui import watching
from gpulab.tui.title_card import TitleCard
from gpulab.tui.watching import WatchApp

EVENTS = read_run_file(recorded_path("h200/batched_matmul")).events
MIDDLE = max(place for place, event in enumerate(EVENTS) if isinstance(event, Samples)) // 2


@pytest.fixture
def folder(tmp_path, monkeypatch):
    started = next(event for event in EVENTS if isinstance(event, RunStarted))
    monkeypatch.setenv("GPULAB_HOST", started.host)
    monkeypatch.setattr(tail, "_QUIET_S", 0.0)
    monkeypatch.setattr(watching, "_POLL_S", 0.05)
    return tmp_path


def watch(journey, name):
    async def go():
        app = WatchApp(place_of(str(name)), ascii_only=False)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: app._bottom.complete)
            await journey(pilot)

    asyncio.run(go())


def card_of(pilot):
    """Return the words of the card in front; empty without one."""
    card = pilot.app.screen
    texts = card.query(Static) if isinstance(card, TitleCard) else ()
    return str(texts.first().render()) if texts else ""  # it may not be composed yet


def test_over_a_folder_the_first_run_is_shown_as_it_comes_and_the_next_is_said(folder):
    async def journey(pilot):
        await until(pilot, lambda: f"gpulab --share {folder}" in card_of(pilot))
        run = RunFile(folder / "1.jsonl", "0.1.0")
        run.append(EVENTS[:MIDDLE])
        await until(pilot, lambda: "watched · batched_matmul" in flat(pilot))
        await until(pilot, lambda: "── confidence" in flat(pilot))
        await pilot.press("r")
        assert "watching only reads" in shown(pilot)
        await pilot.press("2")
        await until(pilot, lambda: "@scenario.variant" in flat(pilot))
        await pilot.press("3")
        run.append(EVENTS[MIDDLE:])
        await until(pilot, lambda: "watched; it ended at" in flat(pilot))
        run.close()
        another = RunFile(folder / "2.jsonl", "0.1.0")
        another.append(EVENTS[:MIDDLE])
        await until(pilot, lambda: "has started: enter on it watches it" in shown(pilot))
        await pilot.press("escape")
        assert [line.strip() for line in listed(pilot)][0::2][:2] == ["going on", "ended"]
        another.close()

    watch(journey, folder)


def test_a_run_whose_process_dies_says_so_and_the_screen_goes_on(folder):
    run = RunFile(folder / "run.jsonl", "0.1.0")
    run.append(EVENTS[:MIDDLE])

    async def journey(pilot):
        await until(pilot, lambda: "── confidence" in flat(pilot))
        run.close()  # as the system does, however its process dies
        await until(pilot, lambda: "the run's process died at" in flat(pilot))
        assert "incomplete run file" in flat(pilot)
        await pilot.press("1")
        await until(pilot, lambda: "one batched call ends both" in flat(pilot))

    watch(journey, run.path)


@pytest.mark.slow
def test_a_class_waits_before_a_card_and_then_goes_where_its_teacher_goes(folder):
    teacher = ClassFile(folder)

    async def journey(pilot):
        await until(pilot, lambda: "no run is going on in" in card_of(pilot))
        teacher.write("GPU\x1b[2J 101", Place("batched_matmul", "lesson", answers=True))
        await until(pilot, lambda: "GPU 101: follows the teacher, L leaves" in shown(pilot))
        await until(pilot, lambda: "bounds what fewer calls can gain" in flat(pilot))
        assert "follow" in pilot.app.screen.footer_keys()
        run = RunFile(folder / "1.jsonl", "0.1.0")
        run.append(EVENTS[:MIDDLE])
        await until(pilot, lambda: "watched · follows the teacher, L leaves" in flat(pilot))
        teacher.write("GPU 101", Place("batched_matmul", "code"))
        await until(pilot, lambda: pilot.app.screen._detail.tab == "code")
        teacher.write("GPU 101", Place("batched_matmul", "result", "device", zoomed=True))
        await until(pilot, lambda: "── confidence" not in flat(pilot) and "── " in flat(pilot))
        await pilot.press("L")
        teacher.write("GPU 101", Place("small_kernels", "lesson"))
        await until(pilot, lambda: "looking around, L follows" in flat(pilot))
        await pilot.pause(0.2)
        assert "batched_matmul" in pilot.app.screen.chosen.name
        await pilot.press("L")
        await until(pilot, lambda: pilot.app.screen.chosen.name == "small_kernels")
        assert pilot.app.screen._detail.tab == "lesson"
        played = Replayed(at_s=30.0, since=time(), speed=1.0, playing=False, guesses=(3.0, 8.0))
        teacher.write("GPU 101", Place("pinned_memory", "result", replayed=played))
        await until(pilot, lambda: "paused 1x 0:30" in shown(pilot))
        assert "hidden until the verdict is final" in flat(pilot)
        assert "following paused" in shown(pilot)
        await pilot.press("L")
        assert "left paused" in shown(pilot)
        await pilot.press("L")
        teacher.write("GPU 101", Place("small_kernels", "lesson"))
        await until(pilot, lambda: pilot.app.screen.chosen.name == "small_kernels")
        teacher.remove()
        await until(pilot, lambda: "GPU 101: the class has ended" in shown(pilot))
        await pilot.press("L")
        assert "no teacher shares this folder" in shown(pilot)
        run.close()

    watch(journey, folder)


@pytest.mark.slow
def test_a_teacher_tells_what_is_in_sight_until_the_screen_is_left(lab):
    words = ["--class", "GPU 101", "--share", str(lab.folder), "--device", "cpu"]
    terminal = Pty([sys.executable, "-m", "gpulab", *words], env=lab.env, cwd=lab.folder)
    terminal.read(30, until=b"cold_start")
    terminal.press(b"2")
    file = lab.folder / "class.json"

    def place():
        return json.loads(file.read_bytes() or "{}").get("place", {}) if file.exists() else {}

    wait_for(lambda: place().get("tab") == "code")
    watcher = Pty([sys.executable, "-m", "gpulab", "--watch", str(lab.folder)], env=lab.env)
    watcher.read(30, until=b"follows the teacher")
    assert b"GPU 101" in watcher.output
    terminal.press(b"v")
    wait_for(lambda: place().get("replayed"))
    watcher.read(30, until=b"replay")
    terminal.press(b"\x1b")
    wait_for(lambda: "replayed" in place() and place()["replayed"] is None)
    for each in (terminal, watcher):
        each.press(b"q")
        assert each.end() == 0
    assert not file.exists()
    assert "--class requires --share" in lab.call("--class", "A").stderr
