"""A saved run, played again on the screen of a live one: with keys that stop it, move it and let it
run faster, and with none that would run something.
"""

from __future__ import annotations

import re
from math import inf
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Footer, Input

from gpulab.core.limits import NAME_LENGTH
from gpulab.core.text import cut, one_line
from gpulab.draw.blocks import Text
from gpulab.features.predictions.report import Prediction
from gpulab.features.predictions.view import guesses_line
from gpulab.features.replay.view import Origin, ReplayPosition, made_on, replay_line
from gpulab.options import Options
from gpulab.session.classroom import Replayed
from gpulab.session.playback import Playback
from gpulab.session.run import Run
from gpulab.session.saved import entry_of
from gpulab.tui import bindings
from gpulab.tui.panels.field import InputLine
from gpulab.tui.panels.pane import TextPane
from gpulab.tui.panels.status_line import StatusLine
from gpulab.tui.screens.lab import LabScreen

_TIME = re.compile(r"(?:(?:(\d{1,4}):)?(\d{1,4}):)?(\d{1,6}(?:\.\d*)?)")
_SHARE = re.compile(r"(\d{1,3})%")


class ReplayScreen(LabScreen, inherit_bindings=False):
    """The run file is all that it shows: the entry of its list too is made of it."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings.REPLAY]
    room_beside = inf  # the list has no more than this run
    keys = bindings.REPLAY

    def __init__(
        self, playback: Playback, tick_s: float, prediction: Prediction | None = None
    ) -> None:
        """`prediction`: of its speedup, which waits for its answer."""
        if playback.playing:
            playback.skip_to_measuring()
        entry = entry_of(playback.started.request)
        super().__init__(
            [entry],
            Options(),
            tick_s,
            lambda *_: playback,
            runs_first=entry.name,
            idle=lambda *_: Text(),
        )
        self.read_only = f"a replay runs nothing: gpulab --run {entry.name} measures it here"
        self._entry, self._playback = entry, playback
        self._prediction = prediction
        if prediction is not None:
            self.runs.predictions[entry.name] = prediction
        ready = playback.ready
        environment = ready.environment if ready else {}
        self._origin = Origin(ready.device if ready else None, environment, playback.started.at)
        self.facts = {"recorded on": made_on(self._origin)}
        self._line = StatusLine(None, self._position, self.beside)
        self._bar = InputLine(placeholder="go to 90, 1:30, or 45%; 100% is the end", id="time")
        self._bar.on_keys = {"escape": self._leave_bar}
        self._bar.display = False
        self._before: Widget | None = None
        """What had the focus before somebody typed a time."""

    def _position(self, width: int) -> Text:
        """Return the first line: where the replay is, in place of what a live run is at."""
        playback = self._playback
        position = ReplayPosition(
            at_s=playback.position_s,
            duration_s=playback.duration_s,
            marks=[(mark.at_s, mark.first) for mark in playback.marks],
            stage=playback.stage,
            speed=playback.speed,
            playing=playback.playing,
        )
        word = f"{self.follows} ".lstrip()
        line = replay_line(position, self._origin, width - 2 - len(word))
        return Text(" ").append(word, "bold green").append(line)

    def _keys_of_focus(self) -> tuple[str, ...]:
        return bindings.footer_of("replayed" if self._playback.ended else "replay")

    def _other_words(self) -> dict[str, str]:
        return super()._other_words() | ({} if self._playback.playing else {"pause": "play"})

    def action_next(self) -> None:
        """Leave the replay for the lesson after the one that it was opened from."""
        if len(self.app.screen_stack) == 1:
            return self.refuse("a replay alone has no next lesson: gpulab lists them")
        self.app.pop_screen()
        if isinstance(lab := self.app.screen, LabScreen):
            lab.action_next()
        return None

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self._bar

    def on_mount(self) -> None:  # that of the base class is called by itself
        if self._prediction is not None:
            guesses = TextPane(id="guesses")
            guesses.show(guesses_line(self._prediction))
            self.mount(guesses, after=self._line)

    def _take(self, name: str, run: Run) -> None:
        """It is no run of this machine's history."""

    def action_freeze(self) -> None:
        self._moved(again=self._playback.toggle())

    def action_speed(self, by: int) -> None:
        self._playback.change_speed(by)
        self._moved(again=False)

    def action_go_by(self, seconds: int) -> None:
        self._moved(again=self._playback.seek(self._playback.position_s + seconds))

    def action_go_to(self, share: float) -> None:
        """Go to a share of it: 0 is its start, 1 its end."""
        self._moved(again=self._playback.seek(self._playback.duration_s * share))

    def action_go_to_stage(self, by: int) -> None:
        self._moved(again=self._playback.seek_stage(by))

    def action_step(self) -> None:
        self._playback.step()
        self._moved(again=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A colon is typed where one types, and the cursor goes to the ends of that."""
        typing = isinstance(self.focused, Input)
        return not (typing and action in ("ask_time", "go_to")) and super().check_action(
            action, parameters
        )

    def action_ask_time(self) -> None:
        self._before = self.focused
        self._type(True)
        self.set_focus(self._bar)

    @on(Input.Submitted, "#time")
    def _go_to_time(self, event: Input.Submitted) -> None:
        at_s = time_of(event.value, self._playback.duration_s)
        self._leave_bar()
        if at_s is None:
            given = cut(one_line(event.value), NAME_LENGTH)
            return self.refuse(f"{given}: write a time such as 90, 1:30 or 45%")
        return self._moved(again=self._playback.seek(at_s))

    def _leave_bar(self) -> None:
        self._bar.value = ""
        self._type(False)
        self.set_focus(self._before)

    def _type(self, typing: bool) -> None:
        """In the place of the keys: nothing else moves."""
        self._bar.display = typing
        self.query_one(Footer).display = not typing

    def action_back(self) -> None:
        """Leave the replay for the screen that it was opened from."""
        zoomed = self._detail is not None and self._detail.zoomed
        if zoomed or len(self.app.screen_stack) == 1:
            return super().action_back()
        self.app.pop_screen()
        return None

    @property
    def playback(self) -> Playback:
        return self._playback

    def go_where(self, replayed: Replayed, tab: str, panel: str | None, *, zoomed: bool) -> None:
        """Show what a teacher shows of the same recording."""
        playback, place = self._playback, replayed.position_s
        again = playback.go_on_from(place, replayed.speed, playing=replayed.playing)
        if self._detail is not None:
            self.action_show(tab)
            self._detail.look_at(panel)
            if self._detail.zoomed != zoomed:
                self.action_zoom()
        self._moved(again=again)

    def _moved(self, *, again: bool) -> None:
        """Show where it is by now; `again`: all of it has to be folded anew."""
        self._line.say()
        if again:
            self.runs.start(self._entry)
        if self._detail is not None:
            self._detail.redraw()
        if self._ticks and self._playback.playing:
            self._ticks.resume()
        elif self._ticks:
            self._ticks.pause()
        self._tick()


def time_of(text: str, duration_s: float) -> float | None:
    """Seconds from the start of a run: of 90, 1:30, 1:02:03 or 45%. None of any other text."""
    text = text.strip()
    if matched := _SHARE.fullmatch(text):
        return duration_s * (int(matched[1]) / 100)  # of 100 exactly the end
    if not (matched := _TIME.fullmatch(text)):
        return None
    hours, minutes, seconds = (float(part or 0) for part in matched.groups())
    return (hours * 60 + minutes) * 60 + seconds
