"""The screen of a teacher, as `--class` opens it: the class that watches its runs sees what is
under the cursor.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import time

from gpulab.catalog.catalog import ScenarioRow
from gpulab.catalog.recordings import recording
from gpulab.core.host import host_name
from gpulab.draw.blocks import Text
from gpulab.options import Options
from gpulab.session.classroom import ClassFile, Place, Replayed, watch_command
from gpulab.session.playback import SPEEDS
from gpulab.tui import status
from gpulab.tui.app import LabApp, open_lab
from gpulab.tui.screens.replay import ReplayScreen

_POLL_S = 0.5


class TeachApp(LabApp):
    """It writes what stood still since the poll before, so that a walk through the list is not
    followed line by line.
    """

    _class: ClassFile | None = None
    _stands: Place | None = None
    _told: Place | None = None
    _played: tuple[object, Replayed] | None = None
    """What moved it last, and what watchers were told of it."""

    def on_mount(self) -> None:  # that of the base class is called by itself
        assert self._settings.share is not None
        self._class = ClassFile(self._settings.share)
        self.set_interval(_POLL_S, self._tell)

    def words_of_idle(self, rows: Sequence[ScenarioRow], measured: int, width: int) -> Text:
        """Say what the class types."""
        assert self._settings.share is not None
        command = watch_command(host_name(), self._settings.share)
        return status.line("the class types: ").append(command, "bold blue")

    def _tell(self) -> None:
        before, self._stands = self._stands, self._place()
        if self._stands in (None, self._told) or self._stands != before or self._class is None:
            return
        self._told = self._stands
        try:
            self._class.write(self._settings.class_name or "", self._told)
        except OSError as error:
            self._lab.refuse(f"the class cannot follow: {error.strerror or error}")

    def _place(self) -> Place | None:
        lab = self._lab
        detail = lab._detail
        if detail is None or (entry := lab.chosen) is None:  # its list comes before its tabs
            return None
        replayed = self._replayed(lab) if isinstance(lab, ReplayScreen) else None
        return Place(
            entry.name,
            detail.tab,
            detail._panel or "",
            zoomed=detail.zoomed,
            answers=entry.name in detail.answered,
            replayed=replayed,
        )

    def _replayed(self, screen: ReplayScreen) -> Replayed | None:
        """Return what is played, where it is a recording that a watcher has too; the same object as
        long as nobody moves it.
        """
        playback, (name,) = screen.playback, screen.names
        if playback.path != recording(name):
            return None
        prediction = screen.runs.predictions.get(name)
        guesses = prediction.speedups if prediction else ()
        moved = playback.moved, guesses
        if self._played is None or self._played[0] != moved:
            speed = min(playback.speed, SPEEDS[-2])
            at_s = playback.position_s
            shown = Replayed(at_s, time(), speed, playback.playing and not playback.at_end, guesses)
            self._played = moved, shown
        return self._played[1]

    def _end_processes(self) -> None:
        super()._end_processes()
        if self._class is not None:
            self._class.remove()


def open_class(paths: Sequence[str], options: Options, command: Sequence[str] = ()) -> int:
    """Open the screen of a teacher; returns the exit code. UsageError."""
    return open_lab(paths, options, command, TeachApp)
