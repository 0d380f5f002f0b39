"""The command line: flags to one mode, whose code is imported only then."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from gpulab.core.text import one_line, plain
from gpulab.flags import GROUPS, MODES, Mode
from gpulab.headless.standard_streams import (
    OUTPUT_LOST,
    OutputError,
    check_stdout,
    prepare,
    print_error,
)
from gpulab.version import __version__

if TYPE_CHECKING:
    from gpulab.session.settings import Settings


class FlagError(ValueError):
    """A flag that the chosen mode does not take."""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add every group of flags to the parser."""
    modes = parser.add_argument_group("what to do").add_mutually_exclusive_group()
    for mode_flag in MODES:
        modes.add_argument(mode_flag.mode, default=argparse.SUPPRESS, **mode_flag.options)
    for title, flags in GROUPS.items():
        group = parser.add_argument_group(title)
        for flag in flags:
            group.add_argument(flag.name, default=argparse.SUPPRESS, **flag.options)


def mode_of(given: argparse.Namespace) -> Mode:
    """The mode that the flags choose; the screen where none does."""
    chosen = next(
        (mode_flag.mode for mode_flag in MODES if mode_flag.is_chosen(given)), Mode.SCREEN
    )
    return Mode.OBSERVER if chosen == Mode.RUN and hasattr(given, "observer_effect") else chosen


def check_flags(mode: Mode, given: argparse.Namespace) -> None:
    """FlagError where flags were given that the mode would ignore."""
    flags = [flag for flags in GROUPS.values() for flag in flags]
    ignored = [
        flag for flag in flags if hasattr(given, flag.destination) and mode not in flag.modes
    ]
    if ignored:
        names = ", ".join(flag.name for flag in ignored)
        taking = [other for other in Mode if all(other in flag.modes for flag in ignored)]
        modes = " or ".join(
            dict.fromkeys(Mode.RUN if other == Mode.OBSERVER else other for other in taking)
        )
        takes = (
            f"; {'it requires' if len(ignored) == 1 else 'they require'} {modes}" if modes else ""
        )
        raise FlagError(f"{mode} does not take {names}{takes}")


Refined = TypeVar("Refined", bound="Settings")
_INTERRUPTED = 130
_DESCRIPTION = """\
A lab for GPU performance. A scenario holds variants of the same work; gpulab
measures them in a background process, side by side and again and again on fresh
builds, checks that they compute the same, and says which is faster, by how much,
and how sure that is.
"""
_EXAMPLES = """\
examples:
  gpulab                                     open the screen: choose, run, watch
  gpulab train.py                            the same, with the scenarios of a file first
  gpulab --guide                             the manual: verdicts, roofline, own scenarios
  gpulab --calibrate                         what this device can do at best
  gpulab --list                              the scenarios, and missing requirements
  gpulab --run batched_matmul                measure a lesson, print the table
  gpulab --run batched_matmul --set n=128    with another parameter
  gpulab --run batched_matmul --sweep n=16,64,256   a curve: one run a value
  gpulab --run my_step.py --repeat 8         eight runs, and the interval over them
  gpulab --new my_step.py                    write a scenario to start from
  gpulab --run my_step.py                    measure a scenario of your own
  gpulab --run train.py:step --trace t.json  time a function of any file, see its goodput
  gpulab --from-trace t.json                 its heaviest operations as a scenario
  gpulab --run my_step.py --fail-below 1.2x  in CI: exit 5 where it is slower
  gpulab --run all                           the whole library, one table at its end
  gpulab --run all --quick --json all.json   shorter and less precise, as JSON for a script

verdicts:
  faster, slower  the 99 % interval of the speedup lies beyond 1 %
  same            it lies within 2 % of 1x
  inconclusive    it is too wide for either
  unchecked       measured, but its output was compared with nothing
  wrong           the output differs from the baseline's
  invalid         no fair comparison, or the lab's own control failed

exit codes:
  0 measured   2 usage   3 the scenario failed, or its needs are unmet
  4 wrong output   5 slower than --fail-below   6 inconclusive against --fail-below
  7 invalid   130 interrupted; of several the first of 130 2 3 4 7 5 6
  74 a file or a stream cannot be read or written, such as stdout, --json, --plot
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    prepare()
    try:
        code = _run_command(arguments)
        if code != _INTERRUPTED:  # by the end of the terminal, perhaps
            check_stdout()
        return code
    except OutputError as error:
        print_error(str(error))
        return OUTPUT_LOST
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe, such as head, went away: nobody is left to print to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:  # no file descriptor is left, or no space
        print_error(
            f"{error.filename}: {error.strerror}"
            if error.filename
            else str(error.strerror or error)
        )
        return OUTPUT_LOST


class _Parser(argparse.ArgumentParser):
    """Its messages quote what was given, which may hold anything."""

    def error(self, message: str) -> NoReturn:
        super().error(one_line(message))

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(plain(message), file)


def _run_command(arguments: Sequence[str] | None) -> int:
    try:
        parser = _parser()
        return _run_mode(parser, parser.parse_args(arguments))
    except SystemExit as ended:  # by argparse: a mistake, or --help
        return int(ended.code or 0)
    except (ValueError, LookupError) as error:
        from gpulab.catalog.catalog import ScenarioNotFoundError
        from gpulab.session.settings import UsageError

        if not isinstance(error, (ScenarioNotFoundError, UsageError)):
            raise
        print_error(_usage_message(error))
        return 2


def _usage_message(error: Exception) -> str:
    from gpulab.session.settings import UsageError

    if isinstance(error, UsageError):
        from gpulab.report.sentences import with_reason

        return with_reason(str(error), error.reason)
    return str(error.args[0])


def _run_mode(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    mode = mode_of(given)
    if given.paths and mode != Mode.SCREEN:
        parser.error(f"{given.paths[0]}: pass it after --run or --list")
    try:
        check_flags(mode, given)
    except FlagError as error:
        parser.error(str(error))
    if mode == Mode.SCREEN:
        return _open_screen(parser, given)
    from gpulab.headless.options import Options

    options = _refined(Options, parser, given)
    if mode == Mode.OBSERVER:
        from gpulab.headless.observer import observer_effect

        return observer_effect(given.run, options)
    chosen = next(mode_flag for mode_flag in MODES if mode_flag.mode == mode)
    return chosen.carry_out(given, options)


def _open_screen(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        parser.error(
            "the screen needs a terminal; without one there are --list, --run, --guide and --help"
        )
    # until the screen stands: nothing of what is made by then is garbage, and looking takes 40 ms
    gc.disable()
    from gpulab.session.settings import Settings
    from gpulab.tui.app import open_lab

    return open_lab(
        given.paths, _refined(Settings, parser, given), ascii_only=hasattr(given, "ascii")
    )


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="gpulab",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gpulab {__version__}")
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="open the screen, with the scenarios of PATH first"
    )
    add_flags(parser)
    return parser


def _refined(
    kind: type[Refined], parser: argparse.ArgumentParser, given: argparse.Namespace
) -> Refined:
    """The settings of one mode, by the names of its fields; what was not given keeps its
    default.
    """
    values = {
        field.name: getattr(given, field.name)
        for field in fields(kind)
        if hasattr(given, field.name)
    }
    if "chosen" in values:
        chosen = dict(values["chosen"])
        if len(chosen) < len(values["chosen"]):
            parser.error("--set gives one parameter twice")
        values["chosen"] = chosen
    return kind(**values)


if __name__ == "__main__":
    sys.exit(main())
