"""The door to the terminal: Textual's driver, with Ctrl+Z and `fg` of a shell handled by the event
loop; and the last look at every line that is drawn.
"""

from __future__ import annotations

import signal
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from queue import Full
from typing import Any

from rich.cells import get_character_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter

from gpulab.core.text import plain
from gpulab.draw.ascii import to_ascii

_POLL_S = 0.5
_STOP = (signal.SIGTSTP,)


class LabDriver(LinuxDriver):
    """Stops and goes on with the terminal as a shell expects it, whatever a signal interrupts.

    Textual does that within its handlers, which then may wait for a lock that the interrupted code
    holds. And at a SIGCONT without a stop it would start twice, and take its own settings of the
    terminal for the user's.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._on_screen = self._stop_requested = False
        super().__init__(*arguments, **options)
        # Rich says 25 lines of a dumb terminal, and of one without a size, where this driver says
        # 24: two sizes would be laid out in turn for ever, and no key be read.
        self._size = self._size or self._get_terminal_size()

    def start_application_mode(self) -> None:
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self._on_screen = True

    def stop_application_mode(self) -> None:
        self._on_screen = False
        super().stop_application_mode()

    def write(self, data: str) -> None:
        """Queue it for the terminal. Where that takes nothing this waits, but so that handlers of
        signals run.
        """
        writer = self._writer_thread
        # it ends with an error once the terminal is gone
        while data and writer is not None and writer.is_alive():
            with suppress(Full):
                writer._queue.put(data, timeout=_POLL_S)
                return

    def _sigtstp_application(self, *_: object) -> None:
        if not self._stop_requested:
            self._stop_requested = True
            # Sent again it waits in the kernel, where a SIGCONT that comes before the loop gets to
            # it takes it back.
            signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
            signal.raise_signal(signal.SIGTSTP)
            self._call(self._stop)

    def _sigcont_application(self, *_: object) -> None:
        self._call(self._restart)

    def _handle_stop_signals(self) -> None:
        signal.signal(signal.SIGTSTP, self._sigtstp_application)
        signal.signal(signal.SIGCONT, self._sigcont_application)
        self._stop_requested = False

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Another program has the terminal of the suspended app, whose event loop waits: a stop
        takes place at once. The settings of the terminal are as before then.
        """
        settings = termios.tcgetattr(self.fileno)
        release_stop_signals()
        try:
            yield
        finally:
            self._handle_stop_signals()
            termios.tcsetattr(self.fileno, termios.TCSANOW, settings)

    def _call(self, function: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function)

    def _stop(self) -> None:
        """Give the terminal back, stop the process, and take the terminal again once it goes on."""
        was_on_screen = self._on_screen
        if was_on_screen:
            self.suspend_application_mode()
        release_stop_signals()
        self._handle_stop_signals()
        if was_on_screen:
            self._resume()

    def _restart(self) -> None:
        """After a stop that could not be handled: what had the terminal meanwhile may have changed
        it.
        """
        if self._on_screen:
            self.suspend_application_mode()
            self._resume()

    def _resume(self) -> None:
        """Take the terminal again. It is blank by then, and Textual draws only what changes."""
        self.resume_application_mode()
        self._app.refresh(layout=True)


def release_stop_signals() -> None:
    """Put the handlers back that a driver has set; where a stop was asked for, it takes place
    here.
    """
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP)


class PlainFilter(LineFilter):
    """A filter of what would drive the terminal unseen; every cell stays where it was. Neighbours
    that look the same become one segment: each takes 40 bytes of colours in a truecolor terminal.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        line: list[Segment] = []
        for segment in map(_printable, segments):
            before = line[-1] if line else segment
            if line and not segment.control and _looks_as(segment, before.style):
                line[-1] = Segment(before.text + segment.text, before.style)
            else:
                line.append(segment)
        return line


def _looks_as(segment: Segment, style: Style | None) -> bool:
    """Return whether the segment looks the same in that style: of spaces only the background is
    seen.
    """
    own = segment.style
    if own == style:
        return True
    if own is None or style is None or not segment.text.isspace():
        return False
    on_ground = not (own.reverse or own.underline or style.reverse or style.underline)
    return on_ground and own.bgcolor == style.bgcolor and own.meta in ({}, style.meta)


def _printable(segment: Segment) -> Segment:
    if segment.control or segment.text.isprintable():
        return segment
    return Segment("".join(map(_replaced, segment.text)), segment.style)


def _replaced(mark: str) -> str:
    """The character, or where nobody sees it as many replacements as it has cells, which is none
    for most.
    """
    return mark if plain(mark) == mark else "\ufffd" * max(0, get_character_cell_size(mark))


class AsciiFilter(LineFilter):
    """All that is drawn, in ASCII: views and Textual draw with whatever shows best."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        line: list[Segment] = []
        for segment in segments:
            if segment.control or segment.text.isascii():
                line.append(segment)
                continue
            text = segment.text
            if text.startswith("±") and line and line[-1].text.endswith(" "):
                line[-1] = Segment(line[-1].text[:-1], line[-1].style)
                text = f" {text}"
            line.append(Segment(to_ascii(text), segment.style))
        return line


class InReverse(LineFilter):
    """No colours: what stands on one of its own, such as the cursor, is in reverse."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(text, _uncoloured(style or Style.null()), control)
            for text, style, control in segments
        ]


@lru_cache(maxsize=1024)
def _uncoloured(style: Style) -> Style:
    ground = style.bgcolor
    is_marked = ground is not None and not ground.is_default
    return style.without_color + Style(reverse=style.reverse or is_marked)


class FilterChain(LineFilter):
    """Several filters as one: Textual makes a strip, with seven caches, for each."""

    def __init__(self, *filters: LineFilter) -> None:
        super().__init__()
        self._filters = filters

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        for line_filter in self._filters:
            segments = line_filter.apply(segments, background)
        return segments
