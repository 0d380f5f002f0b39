"""The screen over runs of other processes: what goes on is shown, and what becomes of it is said."""

import asyncio

import pytest
from journey import flat, listed, shown, until
from recorded import recorded_path

from gpulab.core.events import RunStarted, Samples
from gpulab.core.run_file import RunFile, read_run_file
from gpulab.session import tail
from gpulab.session.active_runs import place_of
from gpulab.tui import watching
from gpulab.tui.screens.lab import LabScreen
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
            await until(pilot, lambda: isinstance(app.screen, LabScreen) and app.screen.complete)
            await journey(pilot)

    asyncio.run(go())


def test_over_a_folder_the_first_run_is_shown_as_it_comes_and_the_next_is_said(folder):
    async def journey(pilot):
        await until(pilot, lambda: "no run is going on in" in shown(pilot))
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
        await until(pilot, lambda: "starts all forty kernels by one launch" in flat(pilot))

    watch(journey, run.path)
