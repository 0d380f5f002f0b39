"""The interactive lab. It starts no run by itself, and leaves none behind however it ends."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.theme import Theme
from textual.actions import ActionParseResult
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.driver import Driver
from textual.filter import LineFilter, NoColor
from textual.screen import Screen

from gpulab.catalog.catalog import Entry, ScenarioRow, catalog
from gpulab.catalog.recordings import recording
from gpulab.core.statuses import ExitCode
from gpulab.core.terminal import colour_count, over_ssh, shows_unicode
from gpulab.draw.blocks import Text
from gpulab.features import present, taken_out
from gpulab.options import Options, UsageError
from gpulab.report.sentences import sentence
from gpulab.session.drive import Interrupts
from gpulab.session.settings import check_counters, check_machine, check_paths
from gpulab.session.sharing import check_share
from gpulab.tui import status
from gpulab.tui.ask import Ask
from gpulab.tui.bindings import RUNNING, key_names, own_bindings, read_keymap, shown_keys
from gpulab.tui.commands import LabCommands, claims_command, commands_of_keys
from gpulab.tui.driver import (
    AsciiFilter,
    FilterChain,
    InReverse,
    LabDriver,
    PlainFilter,
    release_stop_signals,
)
from gpulab.tui.panels.catalog import WIDE, ScenarioList
from gpulab.tui.runs import Starter
from gpulab.tui.screens.lab import LabScreen
from gpulab.tui.themes import (
    MONO,
    NAMES,
    PALETTES,
    TERMINAL,
    THEMES,
    TITLES,
    keep_theme,
    kept_theme,
)

if TYPE_CHECKING:
    from gpulab.core.findings import Finding
    from gpulab.features.predictions.report import Prediction
    from gpulab.session.playback import Playback
    from gpulab.session.run import Source

_CLASS = "gpulab --class NAME --share FOLDER opens your screen to those who watch the folder"


def _start(entry: Entry, settings: Options) -> Source | Finding:
    # what a run needs would come before the first frame
    if entry.command:
        from gpulab.session.following import start_program
        from gpulab.session.run_files import default_path

        path = default_path(entry.name, settings.share)
        try:
            return start_program(entry.command, settings, path, captured=True)
        except OSError as error:
            raise UsageError(f"no run file can be made: {error.strerror}") from None
    from gpulab.session.launch import start_entry

    return start_entry(entry, settings)


class LabApp(App[int]):
    """One screen over the catalog, or over the `entries` that are given. `starter` makes the source
    of a run. `read_only`: nothing runs here; it is the answer to every key that would run
    something.
    """

    TITLE = "gpulab"
    CSS_PATH = "gpulab.tcss"
    DRIVER: type[Driver] = LabDriver
    keeps_files = True
    """Whether keys may write some: a copy of a result, the theme."""
    BINDINGS: ClassVar[list[BindingType]] = [
        # of every screen, also where one types: an Input copies with it, and Textual asks
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]
    COMMANDS = {LabCommands}  # noqa: RUF012
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012

    def __init__(
        self,
        paths: Sequence[Path] = (),
        settings: Options | None = None,
        *,
        ascii_only: bool,
        starter: Starter = _start,
        command: Sequence[str] = (),
        entries: Sequence[Entry] | None = None,
        read_only: str = "",
        opens: str | None = None,
        replay: Playback | None = None,
        hertz: float = 4,
    ) -> None:
        """`opens`: the entry whose source is started as soon as there is something to see.
        `replay`: a saved run, which is all that there is to see. `hertz`: how often it looks at
        what runs.
        """
        # Colours before the theme: NO_COLOR would turn the defaults into black on black.
        super().__init__(driver_class=self.DRIVER, ansi_color=True)
        self.interrupts = Interrupts()
        self._own_colours = not self.no_color and not 0 < colour_count() < 256
        for theme in THEMES:
            self.register_theme(theme)
        # Rich's own is on black, on white screens too
        self.console.push_theme(Theme({"markdown.code": "bold cyan"}))
        self._ascii_only = ascii_only
        self._own_filters: dict[str, LineFilter] = {}
        self._choose_theme(kept_theme())
        self.animation_level = "none"
        tick_s = 1 / (min(hertz, 2) if over_ssh() else hertz)
        self._keymap_of_user: dict[str, str] = {}
        self._settings = settings or Options()
        self._has_terminal = False
        if entries is None:
            entries = () if replay else catalog(paths)
        if command:
            from gpulab.session.following import entry_of

            program = entry_of(command)
            entries, opens = [program, *entries], program.name
        self.notice: str | None = None
        """What the first line says first."""
        self._tick_s = tick_s
        self._bottom = LabScreen(
            entries,
            self._settings,
            tick_s,
            starter,
            runs_first=opens,
            idle=self.words_of_idle,
        )
        self._bottom.read_only = read_only
        if replay is not None:
            from gpulab.tui.screens.replay import ReplayScreen

            self._bottom = ReplayScreen(replay, tick_s)

    @property
    def _lab(self) -> LabScreen:
        """The one in front: a replay may be before the first."""
        screens = [screen for screen in self.screen_stack if isinstance(screen, LabScreen)]
        return screens[-1] if screens else self._bottom

    def words_of_idle(self, rows: Sequence[ScenarioRow], measured: int, width: int) -> Text:
        """The first line while nothing runs."""
        is_new = not self._lab.runs.any and self._lab.query_one(ScenarioList).is_untouched
        return status.idle(self._settings, rows, measured, width, is_new=is_new)

    def get_line_filters(self) -> Sequence[LineFilter]:
        # The same one for each theme: by it Textual keeps what became of a line.
        theme = self.theme
        if theme not in self._own_filters:
            self._own_filters[theme] = self._own_filter(theme)
        filters = [each for each in super().get_line_filters() if not isinstance(each, NoColor)]
        return [*filters, self._own_filters[theme]]

    def _own_filter(self, theme: str) -> LineFilter:
        """The last look at every line, in a theme."""
        filters: list[LineFilter] = [PlainFilter()]
        if self._ascii_only:
            filters.append(AsciiFilter())
        if theme == MONO or self.no_color:
            filters.append(InReverse())
        return FilterChain(*filters)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield what the command palette finds: all keys of the lab, its scenarios, the themes."""
        if isinstance(screen, LabScreen):
            left_out = screen.refused_keys()
            yield from commands_of_keys(screen, left_out, self.run_action)
            if self.keeps_files and "copy" not in left_out:
                place = "into this folder" if screen.read_only else "beside its run file"
                yield SystemCommand("page: write this result as HTML", place, self.action_page)
            for name in self._lab.names:
                yield SystemCommand(f"go to {name}", "its lesson", partial(self._lab.go_to, name))
            if self.keeps_files and present("claims"):
                yield claims_command(self._lab)
        for name, title in TITLES.items():
            yield SystemCommand(f"theme: {title}", "from now on", partial(self._take_theme, name))
        yield SystemCommand("class: how to start one", _CLASS, partial(self._lab.say, _CLASS))

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Every key, click and command comes here."""
        name = action if isinstance(action, str) else action[1]
        if self._lab.read_only and name.rpartition(".")[2] in RUNNING:
            self._lab.refuse(self._lab.read_only)
            return True
        return await super().run_action(action, default_namespace, namespaces)

    @property
    def _next_theme(self) -> str:
        return NAMES[(NAMES.index(self.theme) + 1) % len(NAMES)]

    def action_next_theme(self) -> None:
        """The next of the themes; it is kept."""
        self._take_theme(self._next_theme)

    def _take_theme(self, name: str) -> None:
        if self.keeps_files:
            keep_theme(name)
        self._choose_theme(name)
        key = shown_keys(self._keymap_of_user.get("theme", "T"))
        self._lab.say(f"theme: {name} ({key}: {self._next_theme} next)")

    def _choose_theme(self, name: str) -> None:
        """Without colours, as NO_COLOR asks, or with few, only those of the terminal can be."""
        chosen = name if self._own_colours or name == MONO else TERMINAL
        if (palette := PALETTES.get(chosen)) is not None:
            self.ansi_theme_dark = self.ansi_theme_light = palette.ansi
        self.theme = chosen
        self.ansi_color = self.current_theme.ansi

    def get_key_display(self, binding: Binding) -> str:
        """Enter by its name: its sign is none of every font."""
        return "enter" if binding.key == "enter" else super().get_key_display(binding)

    def get_default_screen(self) -> Screen[int]:
        return self._bottom

    def _has(self, feature: str) -> bool:
        """Return whether it is there; says where it is not."""
        if present(feature) is not None:
            return True
        self._lab.refuse(taken_out(feature))
        return False

    def action_history(self) -> None:
        """All runs of this machine, from the newest of the lesson under the cursor on."""
        if not self._has("history"):
            return
        from gpulab.tui.screens.history import HistoryScreen

        self.push_screen(HistoryScreen(self._lab.entries, self._lab.chosen))

    def action_operations(self) -> None:
        """The operations of the run of the scenario under the cursor, over the whole screen."""
        from gpulab.tui.screens.page import operations_page

        entry = self._lab.chosen
        if entry is None:
            return
        run = self._lab.runs.of(entry.name)
        if not (page := run and operations_page(run.report)):
            return self._lab.refuse(
                f"no operations of {entry.name} so far: "
                "the profile records them, at the end of a run"
            )
        self.push_screen(page)

    def action_help(self) -> None:
        """The keys, and the words that are on the screen."""
        from gpulab.tui.screens.page import help_page

        screen = self.screen
        panes: Any = screen.query("TextPane, Pane, HistoryList")
        shown = "\n".join(pane.text for pane in panes if pane.is_on_screen)
        of_the_list, read_only = screen is self._lab, bool(self._lab.read_only)
        bindings = self._lab.keys if of_the_list else own_bindings(screen)
        keys = key_names(bindings, self._keymap_of_user, read_only=read_only)
        about = self._lab.about if of_the_list else ""
        beside = of_the_list and not read_only
        self.push_screen(help_page(about, shown, keys, of_the_list=of_the_list, beside=beside))

    def action_edit(self) -> None:
        """Open the file of the scenario under the cursor in an editor, where it failed if it
        did.
        """
        from gpulab.tui.editor import edit

        if (entry := self._lab.chosen) is not None:
            run = self._lab.runs.of(entry.name)
            lines = [failure.line for failure in run.report.failures if failure.line] if run else []
            problem = edit(self, entry.path, lines[0] if lines else None)
            self._lab.read_again(entry)
            self._lab.say(problem or "", "bold red")

    def action_copy(self, whole: bool = False) -> None:
        """Copy the run of the scenario under the cursor as text, and keep it as a file."""
        lab, entry = self._lab, self._lab.chosen
        if entry is None:
            return
        run = lab.runs.of(entry.name)
        if run is None:
            return lab.refuse(f"{entry.name} has no result to copy: r runs it")
        from gpulab.tui.copying import copy
        from gpulab.tui.panels.result import answer_of

        together = lab.runs.together.get(entry.name)
        predicted = answer_of(run, lab.runs.predictions.get(entry.name))
        keeps = not lab.read_only
        lab.say(copy(self, run.report, together, predicted, whole=whole, keeps=keeps))

    def action_page(self) -> None:
        """Write the run of the scenario under the cursor as a page."""
        name = self._lab.chosen.name if self._lab.chosen else ""
        run = self._lab.runs.of(name)
        if run is None:
            return self._lab.refuse(f"{name} has no result here: r runs it, v replays it")
        from gpulab.tui.copying import write_page

        self._lab.say(write_page(run.report, beside=not self._lab.read_only))

    def action_replay(self) -> None:
        """Play the run of the scenario under the cursor again, or a recording that ships; ask
        which, where there are both.
        """
        lab, entry = self._lab, self._lab.chosen
        if entry is None or not self._has("replay") or lab.is_busy():
            return
        name = entry.name
        paths = [path for path in (lab.run_file(name), recording(name)) if path is not None]
        if not paths:
            return lab.refuse(
                f"{name} has no run here, and no recording of it ships: gpulab --replay lists them"
            )

        def play(place: int | None) -> None:
            if place is not None:
                lab.show_expected(name)
                lab.say("")
                replay = self.show_replay(paths[place], lab.say)
                self.run_worker(replay, exclusive=True, group="replay")

        if len(paths) == 1 or entry.saved:
            return play(0)
        from gpulab.tui.derived import ChooseScreen

        runs = "the last run on this machine", f"the recording made on {entry.row.recording}"
        lines = [(Text(words), True) for words in runs]
        self.push_screen(ChooseScreen(f"{name} · replay", lines, enter="replays"), play)

    async def show_replay(
        self, path: Path, say: Callable[[str], None], prediction: Prediction | None = None
    ) -> None:
        """Open a screen that plays a saved run again, or say why it cannot be read. The claim is
        hidden as long as a prediction waits for its answer.
        """
        from gpulab.session.saved import open_playback
        from gpulab.tui.screens.replay import ReplayScreen

        try:
            playback = await asyncio.to_thread(open_playback, path)
        except UsageError as error:
            return say(str(error))
        self.push_screen(ReplayScreen(playback, self._tick_s, prediction))

    def action_course(self) -> None:
        """List the scenarios in the order of the course, or by topic again."""
        by_course = self._lab.query_one(ScenarioList).regroup()
        order = "in the order of the course: each lesson has its questions below its text"
        self._lab.say(order if by_course else "by topic")

    def action_predict(self) -> None:
        """Ask how many times as fast it will be, then run it; where it cannot run here, play the
        recording that ships.
        """
        lab, entry = self._lab, self._lab.chosen
        if entry is None or not self._has("predictions") or lab.is_busy():
            return
        from gpulab.tui.screens.predict import PredictScreen

        if entry.saved:
            return lab.refuse(lab.read_only)
        skipped = entry.skipped(lab.runs.settings(entry.name).device)
        runs = not (lab.read_only or entry.row.missing)
        runs = runs and len(entry.row.variants) - len(skipped) >= 2
        recorded = None if runs else recording(entry.name)
        if not entry.can_be_guessed or not (runs or recorded):
            return lab.refuse(f"{entry.name} has no speedup to guess here")

        def go_on(prediction: Prediction | None) -> None:
            if prediction is None:
                return
            lab.query_one(ScenarioList).mark_read([entry.name], guessed=True)
            lab.show_expected(entry.name)
            if recorded is not None:
                self.run_worker(self.show_replay(recorded, lab.say, prediction), group="replay")
                return
            lab.runs.predictions[entry.name] = prediction
            lab.action_run()

        then = "run it" if runs else "watch the recording"
        self.push_screen(PredictScreen(entry.row, skipped if runs else {}, then), go_on)

    def action_options(self, at_sweep: bool = False) -> None:
        """Ask for the parameters, the device and the time of the scenario under the cursor, and for
        a sweep.
        """
        from gpulab.tui.screens.options import OptionsScreen

        entry = self._lab.chosen
        if entry is None or entry.row.error:
            return

        def take(chosen: tuple[Options, str, bool] | None) -> None:
            if chosen is not None:
                settings, sweep, run = chosen
                self._lab.runs.choose(entry.name, settings)
                self._lab.refresh_rows()
                if run:
                    self._lab.run(sweep=sweep or None)

        settings = self._lab.runs.settings(entry.name)
        self.push_screen(OptionsScreen(entry, settings, at_sweep=at_sweep), take)

    def action_run_longer(self) -> None:
        """Run it again for longer, which makes intervals narrower: four times as long, half as
        wide.
        """
        lab, entry = self._lab, self._lab.chosen
        if entry is None:
            return
        run = lab.runs.of(entry.name)
        if run is None or run.state.job is None:
            return lab.refuse(f"{entry.name} has no result to measure for longer: r runs it")
        time_s = getattr(run.state.job, "time_s", None)
        longer = replace(lab.runs.settings(entry.name), time_s=time_s and time_s * 4)

        def start(agreed: bool | None) -> None:
            if agreed:
                lab.runs.choose(entry.name, longer)
                lab.run()

        for_long = f" for {longer.time_s:g} s" if longer.time_s else ""
        self.push_screen(Ask(f"Run {entry.name} again{for_long}?"), start)

    def action_sweep(self) -> None:
        """Run the scenario under the cursor at every value of its own sweep; ask where it has none,
        or several.
        """
        entry = self._lab.chosen
        if entry is not None and len(entry.row.sweep) == 1:
            ((parameter, values),) = entry.row.sweep.items()

            def run(agreed: bool | None) -> None:
                if agreed:
                    self._lab.run(sweep="")

            listed = ", ".join(map(str, values))
            question = f"Run {entry.name} {len(values)} times, at {parameter}={listed}?"
            self.push_screen(Ask(question), run)
        elif entry is not None and entry.row.params:
            self.action_options(at_sweep=True)
        elif entry is not None:
            self._lab.refuse("it has no parameters, so there is nothing to sweep")

    def action_redraw(self) -> None:
        """Draw all of it again: another program may have written over it."""
        self.refresh(layout=True)

    def action_ask_quit(self) -> None:
        """Quit; while a run goes on, go to the screen of that run, which asks first."""
        while self._lab.runs.running is not None and self.screen is not self._lab:
            self.pop_screen()
        self._lab.action_quit()

    async def action_quit(self) -> None:
        """Ctrl+C, and Textual's own Ctrl+Q: from every screen, and nothing is left behind."""
        self._lab.quit()

    def on_mount(self) -> None:
        self._keymap_of_user, problem = read_keymap()
        self.set_keymap(self._keymap_of_user)
        if problem := problem or self.notice:
            self._lab.refuse(problem)
        loop = asyncio.get_running_loop()

        def wake() -> None:
            self._bottom.runs.cancel()
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._interrupt)

        self.interrupts.stop_with(wake)

    def on_ready(self) -> None:
        if self._has_terminal:
            self.set_interval(1.0, self._poll_terminal)
        if not gc.isenabled():  # the command disabled it
            gc.freeze()
            gc.enable()

    def _poll_terminal(self) -> None:
        """Have torch imported before somebody starts a run, while none is under way. Where SIGHUP
        is ignored, as under nohup, nothing else says that the terminal is gone.
        """
        if not os.isatty(sys.stdin.fileno()):
            return self._interrupt()
        if self._lab.runs.running is None and not self._lab.read_only:
            from gpulab.session.worker_process import READY

            # the run that comes next says what the system has too little of
            with suppress(OSError):
                READY.prepare(self._settings.threads)

    def _end_processes(self) -> None:
        self._bottom.runs.end()
        if not self._bottom.read_only:  # where no worker was made ready
            from gpulab.session.worker_process import READY

            READY.close()

    def _interrupt(self) -> None:
        """Quit; where the terminal is gone, at once: Textual would wait for ever for its last bytes
        to be written.
        """
        if os.isatty(sys.stdin.fileno()):
            self._lab.quit()
        else:
            self._end_processes()
            os._exit(ExitCode.INTERRUPTED)

    def run_in_browser(self) -> int:
        """Run it to its end, which is that of its server at the latest; returns the exit code."""
        try:
            self.run()
        finally:
            self._end_processes()
        return self.return_code or 0

    def run_on_terminal(self) -> int:
        """Run it to its end; returns the exit code. What a signal or an error ends leaves nothing
        behind either.
        """
        self._has_terminal = True
        with self.interrupts as interrupts:
            try:
                self.run()
            finally:
                self._end_processes()
                release_stop_signals()
            interrupts.end(answered=True)
        if self.return_code is None:  # nobody asked for its end
            return 1
        return self.return_code or (0 if interrupts.received is None else ExitCode.INTERRUPTED)


def open_lab(
    paths: Sequence[str],
    options: Options,
    command: Sequence[str] = (),
    app_type: type[LabApp] = LabApp,
) -> int:
    """Open the screen on the terminal, with this program started; returns the exit code. UsageError
    where a path is not there.
    """
    places = [Path(path) for path in paths]
    check_paths(places)
    check_machine(options)
    missing = "; ".join(map(sentence, check_counters(options)))
    ascii_only = options.ascii or not shows_unicode()
    app = app_type(places, options, ascii_only=ascii_only, command=command)
    app.notice = missing or None
    if options.share is not None:
        app.notice = check_share(options.share) or app.notice
    return app.run_on_terminal()


def open_replay(name: str, options: Options) -> int:
    """Open the screen on the terminal, with a saved run by its name; returns the exit code.
    UsageError.
    """
    from gpulab.session.saved import find_run, open_playback

    playback = open_playback(find_run(name))
    app = LabApp(ascii_only=options.ascii or not shows_unicode(), replay=playback)
    return app.run_on_terminal()
