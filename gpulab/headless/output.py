"""Where headless output goes: consoles for stdout and stderr, and JSON to stdout or a file."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import msgspec
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from gpulab.core.files import write_whole
from gpulab.core.readable import readable
from gpulab.core.terminal import shows_unicode
from gpulab.core.text import plain, plain_json
from gpulab.headless.standard_streams import OutputError
from gpulab.options import Options, UsageError

if TYPE_CHECKING:
    from gpulab.draw.blocks import Block


class _AsciiFile:
    """A stream that writes all text in ASCII."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        from gpulab.draw.ascii import to_ascii

        return self._file.write(to_ascii(text))


class PlainConsole(Console):
    """Prints what it is given: no markup, no emoji codes, and of every text only what a reader can
    see.
    """

    def __init__(self, file: TextIO, *, ascii_only: bool = False) -> None:
        # Names, texts and errors come from scenarios: nothing of them is markup, an emoji code or a
        # number to colour.
        super().__init__(
            file=cast("TextIO", _AsciiFile(file)) if ascii_only else file,
            markup=False,
            emoji=False,
            highlight=False,
            soft_wrap=False,
        )

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            safe = segment.control or segment.text.isprintable()
            yield segment if safe else Segment(plain(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        raise  # Rich would end the program, with 1


@dataclass(frozen=True)
class Terminal:
    """`out` carries results, or JSON; `err` progress and errors, and results where JSON has
    stdout.
    """

    out: PlainConsole
    err: PlainConsole
    ascii_only: bool = False
    json_on_stdout: bool = False

    @property
    def results(self) -> PlainConsole:
        return self.err if self.json_on_stdout else self.out

    def show(self, content: Block) -> None:
        """Print a result, filled to the width of a terminal; whole lines where it goes to a
        file.
        """
        self.results.print(content, soft_wrap=not self.results.is_terminal)

    def say(self, *lines: str) -> None:
        """Print lines of a result in one piece each, so that paths can be copied."""
        self.results.print(*map(readable, lines), sep="\n", soft_wrap=True)

    def note(self, line: str, style: str = "") -> None:
        """Print a line on stderr, in one piece."""
        self.err.print(readable(line), style=style, soft_wrap=True)


def say_sharing(options: Options) -> None:
    """Say how others watch the runs of this command, or that they cannot. UsageError."""
    folder = options.share
    if folder is None:
        return
    from gpulab.session.sharing import check_share

    problem = check_share(folder)
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    if problem:
        terminal.note(problem, "yellow")
    else:
        terminal.note(f"others watch with: gpulab --watch {folder}", "dim")


def open_terminal(*, ascii_only: bool, json_on_stdout: bool = False) -> Terminal:
    """Both consoles. Python and Rich claim UTF-8 even in LANG=C, so the locale is asked as well."""
    ascii_only = ascii_only or not shows_unicode()
    out, err = (PlainConsole(file, ascii_only=ascii_only) for file in (sys.stdout, sys.stderr))
    return Terminal(out, err, ascii_only, json_on_stdout)


_SURROGATES = re.compile("[\ud800-\udfff]")


def write_json(value: Any, target: str) -> None:
    """`target`: a file, or - for stdout. OutputError where it cannot be written."""
    data = plain_json(msgspec.json.format(_encoded(value))) + b"\n"
    if target == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    try:
        write_whole(Path(target), data)
    except OSError as error:
        raise OutputError(f"--json {target}: {error.strerror}") from None


def _encoded(value: Any) -> bytes:
    """The names of files may be no Unicode: what cannot be encoded is replaced, so that every
    reader takes the rest.
    """
    from gpulab.report.sentences import to_json

    try:
        return to_json(value)
    except UnicodeEncodeError:
        return to_json(_encodable(msgspec.to_builtins(value)))


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list) else value


def check_run_file(path: Path) -> None:
    """UsageError where a run file is there already."""
    if os.path.lexists(path):  # a link that leads nowhere too
        advice = "so nothing was run; a job that is retried needs another name each time"
        raise UsageError(f"--output {path} exists: runs are never overwritten, {advice}")
