"""The lab in a terminal that times it, over a recorded run at its own pace, or over more events
than any run has.

python benchmarks/lab_in_a_terminal.py paced|flood RUN.jsonl       # what `lab_over` starts in
its terminal
"""

import codecs
import os
import re
import select
import sys
import time
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter

from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from pseudo_terminal import Pty

from gpulab.core.events import Log, ProcessStarted, Samples
from gpulab.features.telemetry.events import Telemetry
from gpulab.options import Options
from gpulab.session.run import FileSource
from gpulab.tui.app import LabApp

FLOOD_HZ = 10_000
MIX = "tsttttsttlsttts"
"""Of the events of one second of a run: readings, batches of samples, a printed line."""
PROCESS_S, BATCHES_IN_EPOCH = 1.5, 100
DOWN, UP, ENTER = b"\x1b[B", b"\x1b[A", b"\r"
_ANSWERS = {
    b"\x1b[?2026$p": b"\x1b[?2026;2$y",  # synchronized output: there, as in most terminals of today
    b"\x1b[?2048$p": b"\x1b[?2048;0$y",  # sizes by escape sequence: not there
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b[>c": b"\x1b[>0;0;0c",
    b"\x1b[?u": b"\x1b[?0u",
    b"\x1b[6n": b"\x1b[1;1R",
}
_TOKEN = re.compile(
    r"\x1b\[(?P<private>[<-?]?)(?P<numbers>[\d;:]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\)"
    r"|\x1b[ -/]*[0-OQ-WYZ\\`a-~]"
    r"|(?P<rest>\x1b.*\Z)"
    r"|(?P<control>[\x00-\x1f])"
    r"|(?P<text>[^\x00-\x1f]+)",
    re.DOTALL,
)


class Cells:
    """What the bytes of a program show: (character, style) of every cell, row after row. No cell is
    wide.
    """

    def __init__(self, size):
        self.columns, self.rows = size
        self.cells = [(" ", "")] * (self.columns * self.rows)
        self._x = self._y = 0
        self._style = self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def row(self, y):
        return "".join(
            character for character, _ in self.cells[y * self.columns : (y + 1) * self.columns]
        )

    @property
    def text(self):
        return "\n".join(self.row(y).rstrip() for y in range(self.rows))

    def feed(self, data):
        text, self._rest = self._rest + self._decoder.decode(data), ""
        for token in _TOKEN.finditer(text):
            if token["text"]:
                self._put(token["text"])
            elif token["control"] == "\r":
                self._x = 0
            elif token["control"] == "\n":
                self._y = min(self._y + 1, self.rows - 1)
            elif token["rest"]:
                self._rest = token["rest"]
            elif token["final"] and not token["private"]:
                self._obey(token["final"], token["numbers"])

    def _put(self, text):
        place = self._y * self.columns + self._x
        fitting = text[: self.columns - self._x]
        inverse = "7" in self._style.split(";")
        blank = (" ", self._style if inverse else "")  # erased or written, it looks the same
        self.cells[place : place + len(fitting)] = [
            blank if character == " " else (character, self._style) for character in fitting
        ]
        self._x = min(self._x + len(fitting), self.columns - 1)

    def _obey(self, final, numbers):
        if final == "H":
            y, x = (int(number or 1) for number in (numbers or "1;1").split(";"))
            self._y, self._x = min(y, self.rows) - 1, min(x, self.columns) - 1
        elif final == "m":
            first, _, others = numbers.partition(";")
            self._style = others if first in ("", "0") else f"{self._style};{numbers}"
        elif final == "K":
            place = self._y * self.columns + self._x
            self.cells[place : place + self.columns - self._x] = [(" ", "")] * (
                self.columns - self._x
            )
        elif final == "J":
            self.cells = [(" ", "")] * len(self.cells)


class Terminal(Pty):
    """Starts a program that `q` ends. `received` has (when, how many) of all bytes read."""

    def __init__(self, command, *, size=(80, 24), env):
        self.cells, self.received = Cells(size), []
        self.started = perf_counter()
        super().__init__(command, size=size, env=env)

    @property
    def total(self):
        return sum(count for _, count in self.received)

    def pump(self, seconds, done=None):
        """Read for so long, or until `done()` after some bytes; returns when those came, None where
        it never was.
        """
        end = perf_counter() + seconds
        while (left := end - perf_counter()) > 0:
            if not select.select([self.fd], [], [], left)[0]:
                break
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                raise RuntimeError(f"the program ended:\n{self.cells.text}") from None
            now = perf_counter()
            self.received.append((now, len(data)))
            for query, answer in _ANSWERS.items():
                if query in data:
                    self.press(answer)
            self.cells.feed(data)
            if done is not None and done():
                return now
        return None

    def wait(self, what, done, seconds=30.0):
        """The same, and an error where it never was."""
        when = self.pump(seconds, done)
        if when is None:
            raise RuntimeError(f"{what} never came:\n{self.cells.text}")
        return when

    def first_frame_s(self):
        """Seconds from the start to something in the last row, which a footer fills when all else
        is there.
        """
        return (
            self.wait("the first frame", lambda: self.cells.row(self.cells.rows - 1).strip())
            - self.started
        )

    def settle(self, quiet_s=0.5, within=15.0):
        """Read until nothing has come for so long; returns how many bytes came."""
        before, end = self.total, perf_counter() + within
        while perf_counter() < end:
            count = self.total
            self.pump(quiet_s)
            if self.total == count:
                return count - before
        raise RuntimeError(f"never quiet:\n{self.cells.text}")

    def close(self):
        self.press(b"q")
        return self.end()


class Paced:
    """A source that gives the events of a recorded run at the pace at which they came."""

    def __init__(self, path):
        recording = FileSource(path)
        self.path, self.findings = path, recording.findings
        self._events = recording.take()
        self._given, self._started = 0, time.monotonic()

    @property
    def ended(self):
        return self._given == len(self._events)

    def now(self):
        return min(self._events[0].t + time.monotonic() - self._started, self._events[-1].t)

    def take(self):
        first, now = self._given, self.now()
        while self._given < len(self._events) and self._events[self._given].t <= now:
            self._given += 1
        return self._events[first : self._given]


class Endless:
    """A source that gives a recorded run up to its last samples, and for ever after events like its
    own.

    So many a second as `rate` says.
    """

    ended = False

    def __init__(self, path, rate):
        recording = FileSource(path)
        self.path, self.findings = path, recording.findings
        events = recording.take()
        last = max(place for place, event in enumerate(events) if isinstance(event, Samples))
        self._recorded, self._t = events[: last + 1], events[last].t
        self._rate, self._first_t, self._started = rate, self._t, time.monotonic()
        self._later = self._like_those(events)

    def now(self):
        return self._first_t + time.monotonic() - self._started

    def take(self):
        due = (self.now() - self._t) * self._rate
        recorded, self._recorded = self._recorded, []
        return recorded + list(islice(self._later, int(due)))

    def _like_those(self, events):
        readings = cycle([event for event in events if isinstance(event, Telemetry)])
        batches = cycle([event for event in events if isinstance(event, Samples) and event.epoch])
        process = [event for event in events if isinstance(event, ProcessStarted)][-1]
        epoch, in_epoch, lines, started = process.epoch, 0, 0, 0.0
        read = looked = self._t
        for kind in cycle(MIX):
            self._t += 1 / self._rate
            if self._t >= started + PROCESS_S or in_epoch == BATCHES_IN_EPOCH:
                epoch, in_epoch = epoch + 1, 0
            if self._t >= started + PROCESS_S:
                started = self._t
                number, parts = process.process + 1, dict(process.startup_s)
                process = replace(process, t=self._t, process=number, epoch=epoch, startup_s=parts)
                yield process
            if kind == "t":
                reading = next(readings)
                # Without the time of the look before, samples would wait a minute for their
                # windows, and pile up.
                times = {"t": self._t, "since": read, "others_since": looked}
                yield replace(reading, values=dict(reading.values), **times)
                read, looked = self._t, looked if reading.others is None else self._t
            elif kind == "s":
                batch, in_epoch = next(batches), in_epoch + 1
                rows = len(batch.epoch)
                columns = {
                    "epoch": [epoch] * rows,
                    "round": [in_epoch] * rows,
                    "ended": [self._t] * rows,
                }
                yield replace(
                    batch, t=self._t, complete=epoch, times_s=list(batch.times_s), **columns
                )
            else:
                lines += 1
                yield Log(t=self._t, lines=[f"step {lines} done"])


SOURCES = {"paced": Paced, "flood": lambda path: Endless(path, FLOOD_HZ)}


def lab_over(name, path, *, size, env):
    """The lab at its first screen, in a terminal; whatever is run in it comes from that source."""
    terminal = Terminal([sys.executable, __file__, name, str(path)], size=size, env=env)
    terminal.first_frame_s()
    terminal.settle(1.0)
    return terminal


def main(name, path):
    source, settings = SOURCES[name], Options(device="cpu")
    return LabApp(
        [], settings, ascii_only=False, starter=lambda *_: source(Path(path))
    ).run_on_terminal()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
