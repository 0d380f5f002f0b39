"""The start of a program that is followed, for both faces."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gpulab.catalog.catalog import Entry
from gpulab.core.files import read_regular
from gpulab.core.limits import SOURCE_BYTES
from gpulab.features import present, taken_out
from gpulab.options import Options, UsageError
from gpulab.session.requests import program_of, program_request
from gpulab.session.run_files import default_path, new_run_file

if TYPE_CHECKING:
    from gpulab.session.program import ProgramSession


def entry_of(command: Sequence[str]) -> Entry:
    """A program as lists show it."""
    program = program_of(command)
    source = ""
    with suppress(OSError, UnicodeDecodeError):
        if program.path.endswith(".py"):
            source = read_regular(Path(program.path), SOURCE_BYTES).decode()
    return Entry(
        name=program.scenario,
        path=Path(program.path),
        sha256=program.source_sha256,
        own=True,
        source=source,
        command=tuple(command),
    )


def start_program(
    command: Sequence[str],
    settings: Options,
    path: Path,
    *,
    captured: bool,
    closed: Sequence[int] = (),
) -> ProgramSession:
    """Start it, with its events in a new file: elsewhere where there can be none at `path`.
    OSError where there can be none at all. UsageError where nothing follows programs.
    """
    if present("program") is None:
        raise UsageError(taken_out("program"))
    from gpulab.session.program import ProgramSession

    request = program_request(command, settings)
    try:
        file = new_run_file(path)
    except OSError:
        file = new_run_file(default_path(program_of(command).scenario))
    session = ProgramSession(request, file, command, captured=captured, closed=closed)
    session.start()
    return session
