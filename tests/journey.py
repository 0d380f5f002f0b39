"""Steps of a journey through the app: choose, wait, and read what the screen shows; and runs that
come from a tape.
"""

import asyncio
import time
from functools import cache

from textual import _wait
from textual.events import Key

from gpulab.catalog import catalog
from gpulab.core.events import RunEnded
from gpulab.core.statuses import Outcome
from gpulab.options import Options
from gpulab.session.run import FileSource
from gpulab.tui.app import LabApp
from gpulab.tui.panels.catalog import ScenarioList
from gpulab.tui.panels.pane import Pane
from gpulab.tui.screens.lab import LabScreen

catalog.read_text = cache(catalog.read_text)  # of the lessons that ship, which every app lists
# After each key the pilot sleeps at least twice this long, until the process is idle: 20 ms were most
# of what a journey takes. Waking up alone takes 0.2 ms beside other work; at 8 ms one journey in three
# runs of all tests went on too early.
_wait.SLEEP_GRANULARITY = 0.014
QUICK = Options(device="cpu", time_s=0.3, telemetry="off", profile="off")


class Tape:
    """A source that gives the events of a run file up to some event, and the rest when it is told
    to go on.
    """

    def __init__(self, path, until):
        recording = FileSource(path)
        self.path, self.findings = path, recording.findings
        self._events = recording.take()
        self._given = 0
        self.go_on_to(until)

    @property
    def ended(self):
        return self._given == len(self._events)

    def take(self):
        batch = self._events[self._given : self._stop]
        self._given += len(batch)
        return batch

    def now(self):
        return self._events[max(0, self._given - 1)].t

    def go_on_to(self, until):
        """Go on to the first such event."""
        self._stop = next(place for place, event in enumerate(self._events) if until(event)) + 1

    def go_on(self):
        self._stop = len(self._events)

    def stop(self):
        """End as a run that was stopped."""
        last = self._events[self._given - 1]
        self._events[self._given :] = [RunEnded(outcome=Outcome.CANCELLED, t=last.t)]
        self.go_on()


def visit(journey, *paths, size=(80, 24), settings=QUICK, ascii_only=False, **options):
    """Run `journey(pilot)` in the app over the scenarios of some files, the cursor on the first."""

    async def go():
        app = LabApp(paths, settings, ascii_only=ascii_only, **options)
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: isinstance(app.screen, LabScreen) and app.screen.complete)
            if not paths and "entries" not in options:
                await choose(pilot, "batched_matmul")
            await journey(pilot)

    asyncio.run(go())


async def until(pilot, condition, within=60.0):
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, shown(pilot)
        await pilot.pause(0.01)
    await pilot.pause()


NAMED = {"/": "slash", ":": "colon"}
"""Characters whose keys have a name."""


async def type_in(pilot, text):
    """Type a text whose keys arrive at once, as on a slow line."""
    for character in text:
        pilot.app.post_message(Key(NAMED.get(character, character), character))
    await pilot.pause()


async def choose(pilot, name):
    scenarios = pilot.app.screen.query_one(ScenarioList)
    scenarios.highlighted = scenarios.get_option_index(name)
    await pilot.pause()


def shown(pilot):
    """Everything in sight of what the screen shows beside the list: the titles of boxes, and the
    rows of panes.
    """
    rows = []
    for box in pilot.app.screen.query(".box"):
        rows += [str(box.border_title or ""), str(box.border_subtitle or "")]
    for pane in pilot.app.screen.query("TextPane, Pane"):
        if not pane.size.height or not pane.is_on_screen:
            continue
        own = pane.text.splitlines()
        if isinstance(pane, Pane):
            top = pane.scroll_offset.y
            own = [row.rstrip() for row in own[top : top + pane.size.height]]
        rows += own
    return "\n".join(rows)


def listed(pilot):
    """The lines of the list on screen without what says how far somebody is; > is the cursor."""
    scenarios = pilot.app.screen.query_one(ScenarioList)
    lines = [scenarios.render_line(y).text for y in range(scenarios.size.height)]
    lines = [line.strip().lstrip("●◐○ ") for line in lines]
    cursor = (scenarios.highlighted or 0) - scenarios.scroll_offset.y
    return [f">{line}" if place == cursor else line for place, line in enumerate(lines)]


def flat(pilot):
    return " ".join(shown(pilot).split())


def idle(pilot):
    (lab, *_) = [each for each in pilot.app.screen_stack if isinstance(each, LabScreen)]
    return lab.runs.running is None


async def finish(pilot, key="r"):
    """Press a key that runs something, and wait for the end of the run."""
    await pilot.press(key)
    await until(pilot, lambda: not idle(pilot))
    await until(pilot, lambda: idle(pilot))
