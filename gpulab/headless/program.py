"""`--run -- CMD`: a program that is started as it is and followed; what that gives, on stderr."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from gpulab.core.text import one_line
from gpulab.features.late.report import hang
from gpulab.headless.options import Options
from gpulab.headless.output import (
    check_json,
    check_run_file,
    open_terminal,
    say_sharing,
    write_json,
)
from gpulab.headless.printed import show_program
from gpulab.headless.standard_streams import OutputError, print_error
from gpulab.report.commands import combine
from gpulab.report.sentences import sentence
from gpulab.session.drive import drive_to_end
from gpulab.session.following import start_program
from gpulab.session.program import ProgramSession
from gpulab.session.requests import program_of
from gpulab.session.run_files import default_path
from gpulab.session.settings import UsageError

if TYPE_CHECKING:
    from gpulab.session.run import Run

_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def follow(command: Sequence[str], options: Options) -> int:
    """Run it, and print and write what came out; returns its exit code."""
    if options.json_on_stdout:
        raise UsageError("--json needs a FILE here: stdout is the program's")
    say_sharing(options)
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=True)
    path = options.output or default_path(program_of(command).scenario, options.share)
    check_run_file(path)
    check_json(options.json_file, [path])
    session = start_program(command, options, path, captured=False)
    with _signals_for(session):
        report = drive_to_end(session, watchers=[_Hangs().tell]).report
    code = session.exit_code
    if not session.started:
        print_error(f"{one_line(command[0])}: {session.why_not_started}")
        return code
    terminal.err.print()
    show_program(report, terminal, options)
    if options.json:
        try:
            write_json(combine([report], report.environment), options.json)
        except OutputError as error:  # the exit code is the program's
            print_error(str(error))
    return code


class _Hangs:
    """Ranks that do not come are named while the program hangs, each once."""

    def __init__(self) -> None:
        self._told: set[object] = set()

    def tell(self, run: Run) -> None:
        finding = hang(run.state)
        if finding is None:
            return
        key = finding.values.get("rank"), finding.values.get("place")
        if key not in self._told:
            self._told.add(key)
            print_error(sentence(finding))


@contextmanager
def _signals_for(session: ProgramSession) -> Iterator[None]:
    """Signals to this process are the program's. What a terminal sends comes to the program by
    itself, which is of the same process group.
    """

    def forward(number: int, _: Any) -> None:
        session.forward(number)

    def forward_unless_typed(number: int, _: Any) -> None:
        if not _in_foreground():
            session.forward(number)

    handlers = dict.fromkeys(_FORWARDED, forward)
    handlers |= dict.fromkeys(_FROM_TERMINAL, forward_unless_typed)
    before: dict[signal.Signals, Any] = {}
    for number, handler in handlers.items():
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        sys.stderr.flush()
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """Whether this process is in the foreground of a terminal: then it can be a key."""
    with suppress(OSError):
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
        try:
            return os.tcgetpgrp(terminal) == os.getpgrp()
        finally:
            os.close(terminal)
    return False
