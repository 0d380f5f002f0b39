"""`--run -- CMD`: a program that is started as it is and followed; what that gives, on stderr."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from gpulab.core.text import one_line
from gpulab.features import features, part
from gpulab.headless.output import Terminal, open_terminal, say_sharing, write_json
from gpulab.headless.printed import show_program
from gpulab.headless.standard_streams import OutputError, closed_by_caller, print_error
from gpulab.options import Options, UsageError
from gpulab.report.commands import combine
from gpulab.report.sentences import sentence
from gpulab.session.drive import drive_to_end
from gpulab.session.following import start_program
from gpulab.session.program import NOT_EXECUTABLE, NOT_FOUND, ProgramSession
from gpulab.session.requests import program_of
from gpulab.session.run_files import default_path, kept_elsewhere
from gpulab.session.witness import Witness

if TYPE_CHECKING:
    from gpulab.session.run import Run

_SIGNALS = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


def follow(command: Sequence[str], options: Options) -> int:
    """Run it, and print and write what came out; returns its exit code."""
    if options.json_on_stdout:
        raise UsageError("--json needs a FILE here: stdout is the program's")
    say_sharing(options)
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=True)
    try:
        path = options.output or default_path(program_of(command).scenario, options.share)
        session = start_program(command, options, path, captured=False, closed=closed_by_caller)
    except OSError as error:
        print_error(f"no file can be written ({error.strerror}): the program is not followed")
        return _replaced_by(command)
    if note := _moved(options.output, session.path):
        print_error(note)
    watchers = [_Hangs().tell]
    if options.refresh_s is not None:
        watchers.append(_Refresh(options.refresh_s, terminal).tell)
    with _signals_for(session):
        report = drive_to_end(session, watchers=watchers).report
    code = session.exit_code
    if not session.started:
        print_error(f"{one_line(command[0])}: {session.why_not_started}")
        return code
    if session.nsys_failed and not session.signalled:
        print_error("nsys did not start the program: it runs without")
        return follow(command, replace(options, nsys=None))
    terminal.err.print()
    show_program(report, terminal, options)
    if session.nsys is not None:
        terminal.say(*session.nsys.outcome())
    if options.json:
        try:
            write_json(combine([report], report.environment), options.json)
        except OutputError as error:  # the exit code is the program's
            print_error(str(error))
    return code


def _replaced_by(command: Sequence[str]) -> int:
    """This process becomes the program; returns only where that is not there."""
    sys.stderr.flush()
    for fd in closed_by_caller:
        os.set_inheritable(fd, False)
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        print_error(f"{one_line(command[0])}: {error.strerror}")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


def _moved(output: Path | None, path: Path) -> str:
    """Return a remark where the run file is not where it was to be: the program runs anyway."""
    if output is None or output == path:
        return kept_elsewhere(path)
    reason = "exists, and runs are never overwritten" if output.exists() else "cannot be made"
    return f"--output {output} {reason}: the run is kept in {path}"


class _Hangs:
    """Ranks that do not come are named while the program hangs, each once."""

    def __init__(self) -> None:
        self._told: set[object] = set()

    def tell(self, run: Run) -> None:
        for feature in features():
            finding = feature.hang(run.state)
            if finding is None:
                continue
            key = finding.values.get("rank"), finding.values.get("place")
            if key not in self._told:
                self._told.add(key)
                print_error(sentence(finding))


class _Refresh:
    """Where the time of the program went so far, printed now and then."""

    def __init__(self, every_s: float, terminal: Terminal) -> None:
        self._every_s, self._terminal = every_s, terminal
        self._next = monotonic() + min(10.0, every_s)

    def tell(self, run: Run) -> None:
        if monotonic() < self._next:
            return
        self._next = monotonic() + self._every_s
        if block := part("bill.view:bill_so_far", run.report):
            self._terminal.show(block)


@contextmanager
def _signals_for(session: ProgramSession) -> Iterator[None]:
    """Signals to this process are the program's while it runs, and reach it once: what is sent to
    the process group, or to all of a job, or typed, has come to it by itself. Once it has ended
    they end what this process still does.
    """
    witness = Witness(_SIGNALS)
    came: SimpleQueue[tuple[signal.Signals, float] | None] = SimpleQueue()
    forwarding = threading.Thread(target=_forward, args=(session, witness, came), daemon=True)

    def take(number: int, _: Any) -> None:
        session.signalled = True
        if session.program_ended:
            session.stop_reading()
        else:
            came.put((signal.Signals(number), monotonic()))

    before: dict[signal.Signals, Any] = {}
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            before[number] = signal.signal(number, take)
    forwarding.start()
    try:
        yield
    finally:
        came.put(None)
        forwarding.join(4.0)
        sys.stderr.flush()
        for number, handler in before.items():
            signal.signal(number, handler)


def _forward(
    session: ProgramSession,
    witness: Witness,
    came: SimpleQueue[tuple[signal.Signals, float] | None],
) -> None:
    while (item := came.get()) is not None:
        number, at = item
        # in which all processes of a job have a signal that is sent to one after another
        sleep(max(0.0, at + 0.05 - monotonic()))
        if not witness.saw(number, at):
            session.forward(number)
    witness.end()
