"""The screen over runs of other processes, which are only read: one, or those of a folder."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from textual.binding import BindingType

from gpulab.catalog.catalog import Entry, ScenarioRow, catalog
from gpulab.catalog.recordings import recording
from gpulab.catalog.source import is_folder
from gpulab.core.findings import Finding
from gpulab.core.run_file import RunFileError
from gpulab.core.terminal import shows_unicode
from gpulab.core.units import plural
from gpulab.draw.blocks import Text
from gpulab.features.predictions.report import Prediction
from gpulab.options import Options, UsageError
from gpulab.session.active_runs import RunInfo, RunsFolder, place_of, source_of
from gpulab.session.classroom import ClassFile, Place, Replayed, Shown
from gpulab.session.playback import Playback
from gpulab.session.run import Source
from gpulab.session.run_files import at_home, runs_folder
from gpulab.session.saved import entry_of
from gpulab.tui import status
from gpulab.tui.app import LabApp
from gpulab.tui.bindings import key
from gpulab.tui.panels.catalog import ScenarioList
from gpulab.tui.panels.tabs import TABS
from gpulab.tui.screens.lab import LabScreen
from gpulab.tui.screens.replay import ReplayScreen
from gpulab.tui.title_card import TitleCard

_POLL_S = 1.0
_READ_ONLY = "watching only reads: it starts and stops nothing"
_GOING_ON, _ENDED = "going on", "ended"
_FOLLOW = key(
    "follow", "L", "app.follow", "follow the teacher of a class, or look around", "follow/leave"
)


def watch(name: str, options: Options) -> int:
    """Open the screen over a run, or over those of a folder; returns the exit code. UsageError."""
    ascii_only = options.ascii or not shows_unicode()
    # below a run's
    os.nice(10)
    return WatchApp(place_of(name), ascii_only=ascii_only).run_on_terminal()


class WatchApp(LabApp):
    """Over a folder it lists what comes, above lessons if there are any, and shows the first run
    that goes on. Where a teacher shares the folder with a class, it goes where the teacher goes.
    """

    BINDINGS: ClassVar[list[BindingType]] = [_FOLLOW]

    def __init__(
        self,
        place: Path,
        *,
        ascii_only: bool,
        lessons: Sequence[Entry] = (),
        read_only: str = _READ_ONLY,
    ) -> None:
        self._lessons = lessons
        self._lists_ended = place != runs_folder()  # those are in the history
        self._place = place
        self._folder: RunsFolder | None = None
        self._paths: dict[str, Path] = {}
        self._listed: list[Entry] = []
        self._problem = self._ended = ""
        self._shown: Shown | None = None
        """What the teacher shows, where there is one."""
        self._follows = True
        self._went_to: Place | None = None
        self._card: TitleCard | None = None
        self._scenarios: dict[str, str] = {}
        """Of the runs that are listed, by the names of those."""
        if place != runs_folder() and not is_folder(place):
            self._paths[place.stem] = place
            self._listed = [Entry(place.stem, place, saved=True)]
        else:
            self._folder = RunsFolder(place)
            self._listed = self._found()
        self._class = ClassFile(place)
        super().__init__(
            ascii_only=ascii_only,
            starter=self._open,
            entries=self._listed,
            read_only=read_only,
            opens=self._first,
            # one of many watchers, on a machine that measures
            hertz=1.0,
        )
        self._bottom.keys = (*self._bottom.keys, _FOLLOW)
        self._bottom.beside = self._words_of_class

    def on_mount(self) -> None:  # that of the base class is called by itself
        self.set_interval(_POLL_S, self._look)

    def words_of_idle(self, rows: Sequence[ScenarioRow], measured: int, width: int) -> Text:
        """Say how many runs there are to watch."""
        return status.line(self._words(rows))

    def _words(self, rows: Sequence[ScenarioRow]) -> str:
        if self._problem:
            return self._problem
        if self._shown is not None:
            return f"read-only · {self._shown.name}: {self._words_of_class()}"
        if self._ended:
            return f"read-only · {self._ended}"
        going_on = sum(row.topic == _GOING_ON for row in rows)
        if self._folder is None:
            return f"watched: {at_home(self._place)}"
        if self._lessons and not going_on:
            return f"read-only · {plural(len(self._lessons), 'lesson')} · no run is going on"
        if going_on:
            words = f"{plural(going_on, 'run')} going on in {at_home(self._place)}: enter watches"
            return f"read-only · {words}" if self._lessons else words
        return f"no run is going on in {at_home(self._place)}: waiting for one"

    @property
    def _first(self) -> str | None:
        """Return what is shown without a key: the only run, or the newest that goes on."""
        return next(
            (
                entry.name
                for entry in self._listed
                if self._folder is None or entry.heading == _GOING_ON
            ),
            None,
        )

    def _open(self, entry: Entry, _: Options) -> Source | Finding:
        path = self._paths.get(entry.name)
        if path is None:
            raise UsageError(self._bottom.read_only)
        try:
            return source_of(path)
        except (OSError, RunFileError) as error:
            raise UsageError(f"{entry.path}: {error}") from None

    def _look(self) -> None:
        """List what there is by now."""
        if not self._bottom.complete or not self._bottom.query(ScenarioList):
            return  # the list is not there yet, or not any more
        before, self._shown = self._shown, self._class.read()
        if self._shown and not self._lessons:
            self._lessons = catalog()
        self._list_again()
        self._show_card()
        if self._follows:
            self._follow()
        self._tell_screens()
        if before and not self._shown:
            self._ended, self._went_to = f"{before.name}: the class has ended", None
            self._lab.refuse(f"{self._ended}; this screen stays, q quits")

    def _tell_screens(self) -> None:
        """Tell every screen of the lab whether a class is followed."""
        words = ("following" if self._follows else "left") if self._shown else ""
        for screen in self.screen_stack:
            if isinstance(screen, LabScreen) and screen.follows != words:
                screen.follows = words
                screen.refresh_rows()

    def _list_again(self) -> None:
        entries = self._listed
        if self._folder is not None:
            entries = self._found()
        else:
            run = self._bottom.runs.of(entries[0].name)
            if run and run.state.request and not entries[0].sha256:
                entries = [entry_of(run.state.request, entries[0].name)]
        if entries == self._listed:
            return
        going_on = {entry.name for entry in self._listed if entry.heading == _GOING_ON}
        self._listed = entries
        self._bottom.list_again(entries)
        started = [entry.name for entry in entries if entry.heading == _GOING_ON]
        new = [name for name in started if name not in going_on]
        if new and (not self._bottom.runs.any or (self._shown and self._follows)):
            self._bottom.go_to(new[0])
        elif new:
            # once the cursor, which was put anew, has taken the message before it away
            self.call_later(self._bottom.say, f"{new[0]} has started: enter on it watches it")

    def _show_card(self) -> None:
        """Show the title card as long as there is nothing to list."""
        waits = not (self._shown or self._listed or self._problem)
        if waits and self._card is None and self.screen is self._bottom:
            shared = f" --share {shlex.quote(str(self._place))}" * self._lists_ended
            self._card = TitleCard(at_home(self._place), f"gpulab{shared}")
            self.push_screen(self._card)
        elif not waits and self._card is not None and self.screen is self._card:
            self.pop_screen()
            self._card = None

    def _follow(self) -> None:
        place = self._shown.place if self._shown else None
        if place is None or place.tab not in TABS or place == self._went_to:
            return
        self._went_to = place
        if place.replayed is not None:
            return self._follow_replay(place, place.replayed)
        if isinstance(self.screen, ReplayScreen):
            self.pop_screen()
        runs = [name for name, scenario in self._scenarios.items() if scenario == place.lesson]
        names = [entry.name for entry in self._listed if entry.name in (place.lesson, *runs)]
        if not names:
            return None
        chosen, detail = self._bottom.chosen, self._bottom._detail
        if chosen is None or chosen.name != names[0]:
            self._bottom.go_to(names[0])
        self._bottom.action_show(place.tab)
        if detail is not None:
            if place.tab == "lesson" and place.answers != (names[0] in detail.answered):
                # once the lesson has its place
                self.call_after_refresh(self._bottom.action_answers)
            detail._panel = place.panel or None
            if detail.zoomed != place.zoomed:
                self._bottom.action_zoom()
        return None

    def _follow_replay(self, place: Place, replayed: Replayed) -> None:
        path = recording(place.lesson)
        if path is None:
            return
        front = self.screen
        replay = front if isinstance(front, ReplayScreen) else None
        if replay is None or replay.playback.path != path:
            if replay is not None:
                self.pop_screen()
            guessed = Prediction(replayed.guesses) if replayed.guesses else None
            replay = ReplayScreen(Playback(path), self._tick_s, guessed)
            replay.runs.keeps = False  # they are the teacher's
            replay.keys = (*replay.keys, _FOLLOW)
            self.push_screen(replay)
        if not replay.complete:
            self._went_to = None  # look again
            return
        replay.go_where(replayed, place.tab, place.panel or None, zoomed=place.zoomed)

    def action_follow(self) -> None:
        if self._shown is None:
            self._lab.refuse("no teacher shares this folder with a class: gpulab --class")
            return
        self._follows, self._went_to = not self._follows, None
        if self._follows:
            self._follow()
        self._tell_screens()
        self._lab.say("")

    def _words_of_class(self) -> str:
        if self._shown is None:
            return self._ended
        return "follows the teacher, L leaves" if self._follows else "looking around, L follows"

    def _found(self) -> list[Entry]:
        """Those of the folder, as lists show them: what goes on first."""
        assert self._folder is not None
        try:
            runs, self._problem = self._folder.scan(), ""
        except OSError as error:
            self._problem = f"{at_home(self._place)}: {error.strerror or error}"
            runs = []
        before = {entry.name: entry for entry in self._listed}
        names = {path: name for name, path in self._paths.items()}
        entries = []
        for run in sorted(runs, key=lambda run: not run.goes_on):
            if not (run.goes_on or self._lists_ended or run.path in names):
                continue
            name = names.get(run.path) or _name(run)
            while self._paths.setdefault(name, run.path) != run.path:
                name += "+"
            self._scenarios[name] = run.scenario
            heading = _GOING_ON if run.goes_on else _ENDED
            entry = before.get(name) or entry_of(run.started.request, name)
            entries.append(entry if entry.heading == heading else replace(entry, heading=heading))
        return [*entries, *self._lessons]


def _name(run: RunInfo) -> str:
    """Its scenario, and when it started, by the clock of this place."""
    try:
        at = datetime.fromisoformat(run.started.at).astimezone()
    except (ValueError, OverflowError):
        return run.scenario
    today = at.date() == datetime.now().astimezone().date()
    return f"{run.scenario} {at:{'%H:%M:%S' if today else '%b %d %H:%M'}}"
