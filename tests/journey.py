"""Steps of a journey through the app: choose, wait, and read what the screen shows."""

import time

from gpulab.run.request import Settings
from gpulab.tui.widgets.pane import Pane
from gpulab.tui.widgets.scenario_list import ScenarioList

QUICK = Settings(device="cpu", time_s=0.3, telemetry="off")


async def until(pilot, condition, within=60.0):
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, shown(pilot)
        await pilot.pause(0.05)
    await pilot.pause()


async def choose(pilot, name):
    names = pilot.app.screen.query_one(ScenarioList)
    names.highlighted = names.get_option_index(name)
    await pilot.pause()


def shown(pilot):
    """Everything the panes on screen show."""
    panes = [pane for pane in pilot.app.screen.query(Pane) if pane.size.height and pane.is_on_screen]
    return "\n".join(pane.render_line(y).text.rstrip() for pane in panes for y in range(pane.size.height))


def flat(pilot):
    return " ".join(shown(pilot).split())


def idle(pilot):
    return "ready" in shown(pilot).splitlines()[0]


async def finish(pilot, key="enter"):
    await pilot.press(key)
    await until(pilot, lambda: not idle(pilot))
    await until(pilot, lambda: idle(pilot))
