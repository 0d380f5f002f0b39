"""The command line: flags to one mode, whose code is imported only then."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import zip_longest
from textwrap import fill
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from gpulab.core.text import one_line, plain
from gpulab.flags import GROUPS
from gpulab.headless.standard_streams import (
    OUTPUT_LOST,
    OutputError,
    check_stdout,
    prepare,
    print_error,
)
from gpulab.modes import MODES, Mode, check_installed, function_of

if TYPE_CHECKING:
    from gpulab.headless.options import Options
    from gpulab.session.settings import Settings


Refined = TypeVar("Refined", bound="Settings")
_FLAGS = [flag for flags in GROUPS.values() for flag in flags]
_HELP = ("-h", "--help")
_INTERRUPTED = 130
_WIDTH = 79
_SEPARATOR = "--"
"""Before the program that is followed, whose arguments are its own."""
_OVERVIEW = """\
A lab for GPU performance: it runs variants of the same work in turn, checks
that they compute the same, and says which is faster and by how much.

usage: gpulab [PATH ...] [flags]    the screen: choose a scenario, run it, watch
       gpulab MODE ... [flags]      without the screen
{modes}
flags of a mode: gpulab --run --help, ...; flags of the screen: gpulab . --help

gpulab --doctor                     is this machine ready?
gpulab --run batched_matmul         measure a lesson
gpulab --new my_step.py             write a scenario, which --run measures
gpulab --run train.py:step          time and profile a function of any file
gpulab --run -- python train.py     run a program as it is, and follow its steps
"""
_SCREEN_USAGE = "[PATH ...]"
_SCREEN_ABOUT = """\
Open the screen, with the scenarios of PATH first. The flags apply to every run
that is started there.
"""
_FOLLOW_ABOUT = """\
Start a program as it is, time its steps, and record some of them. stdin, stdout
and the exit code are the program's own; the result goes to stderr. Of a Python
that imports torch the steps are those of the first optimizer, or else outermost
calls of modules; a call of gpulab.step() at the end of each names them itself.
"""
_OF_RUN = """\
examples:
  gpulab --run batched_matmul --set n=128         another parameter
  gpulab --run batched_matmul --sweep n=16,64,256 a curve: a run for each value
  gpulab --run my_step.py --repeat 8              eight runs and their interval
  gpulab --run my_step.py --fail-below 1.2x       in CI: exit code 5 if slower
  gpulab --run all --quick --json all.json        all scenarios, for a script

a program, started as it is and followed (gpulab --run --help -- has its flags):
  gpulab --run -- python train.py --epochs 1      its steps, and where they go
  gpulab --run --json r.json -- torchrun train.py flags stand before the --
  gpulab -- python train.py                       on the screen

verdicts:
  faster, slower  the 99 % interval of the speedup lies beyond 1 %
  same            the interval lies within 2 % of 1x
  inconclusive    neither; it says which effect is excluded
  unchecked       measured, but the output was not compared with anything
  wrong           the output differs from the baseline's
  invalid         no fair comparison, or the lab's own control failed

exit codes:
  0 measured   2 usage   3 the scenario failed, or its needs are unmet
  4 wrong output   5 slower than --fail-below   6 inconclusive with --fail-below
  7 invalid   130 interrupted; of several the first of 130 2 3 4 7 5 6
  74 a file or a stream cannot be read or written (--json, --plot, --export)
"""


class _Once(argparse.Action):
    """Keeps the value of a flag, which may be given once: of two argparse drops the first."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if hasattr(namespace, self.dest):
            raise argparse.ArgumentError(self, "given twice: write it once")
        setattr(namespace, self.dest, values)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of every mode to the parser."""
    parser.register("action", None, _Once)
    modes = parser.add_mutually_exclusive_group()
    for mode_flag in MODES:
        modes.add_argument(mode_flag.mode, default=argparse.SUPPRESS, **mode_flag.options)
    for flag in _FLAGS:
        parser.add_argument(flag.name, default=argparse.SUPPRESS, **flag.options)


def flag_problem(mode: Mode, given: argparse.Namespace) -> str | None:
    """Which flags were given that the mode would ignore."""
    ignored = [
        flag for flag in _FLAGS if hasattr(given, flag.destination) and mode not in flag.modes
    ]
    if not ignored:
        return None
    taking = [other for other in Mode if all(other in flag.modes for flag in ignored)]
    names = {other: str(other) for other in Mode}
    if Mode.FOLLOW in (mode, *taking):
        names |= _TWO_RUNS
    message = f"{names[mode]} does not take {', '.join(flag.name for flag in ignored)}"
    if taking:
        they = "it requires" if len(ignored) == 1 else "they require"
        message += f"; {they} {' or '.join(names[other] for other in taking)}"
    return message


def _check_features(given: argparse.Namespace) -> None:
    """UsageError where a flag is of a feature that was taken out."""
    for flag in _FLAGS:
        if flag.feature and hasattr(given, flag.destination):
            check_installed(flag.name, flag.feature)


_TWO_RUNS = {Mode.RUN: "--run WHAT", Mode.FOLLOW: "--run -- PROGRAM"}
"""Where one of them is meant and not the other."""


def help_text(arguments: Sequence[str]) -> str:
    """The modes, where help alone is asked for; else the page of the mode that is chosen."""
    if all(argument in _HELP for argument in arguments):
        return _OVERVIEW.format(modes="\n".join(_in_two_columns()))
    mode = _mode_named(arguments)
    usage, about = _SCREEN_USAGE, _SCREEN_ABOUT
    if mode == Mode.RUN and _SEPARATOR in arguments:
        mode, usage, about = Mode.FOLLOW, "--run [flags] -- PROGRAM [ARGUMENT ...]", _FOLLOW_ABOUT
    for mode_flag in MODES:
        if mode_flag.mode == mode:
            usage = f"{mode} {mode_flag.usage}"
            about = fill(mode_flag.about, _WIDTH)
    page = argparse.ArgumentParser(
        usage=f"gpulab {usage}{'' if mode == Mode.FOLLOW else ' [flags]'}",
        description=about,
        epilog=_OF_RUN if mode == Mode.RUN else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    for title, flags in GROUPS.items():
        group = page.add_argument_group(title)
        for flag in flags:
            if mode in flag.modes:
                group.add_argument(flag.name, **flag.options)
    return page.format_help()


def _in_two_columns() -> Iterator[str]:
    """All modes, for the overview."""
    cells = [f"{mode_flag.mode:<13}{mode_flag.help}" for mode_flag in MODES]
    cells.append(f"--version    gpulab {_version()}")
    half = (len(cells) + 1) // 2
    for left, right in zip_longest(cells[:half], cells[half:], fillvalue=""):
        yield f"  {left:<39}{right}".rstrip()


def _mode_named(arguments: Sequence[str]) -> Mode:
    """The mode, by its flag alone: what else there is may be no command yet."""
    named = [argument.partition("=")[0] for argument in arguments]
    for mode_flag in MODES:
        if mode_flag.mode in named:
            return mode_flag.mode
    return Mode.SCREEN


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
        # The reader of the pipe, such as head, has exited: there is no output any more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:  # no file descriptor is left, or no space
        message = str(error.strerror or error)
        if isinstance(error, FileNotFoundError) and error.filename is None:  # os.getcwd
            message = "the current folder was deleted: cd to another"
        print_error(f"{error.filename}: {message}" if error.filename else message)
        return OUTPUT_LOST


def _version() -> str:
    from gpulab.commit import version

    return version()


class _Version(argparse.Action):
    """With the commit, which only this asks for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"gpulab {_version()}")
        parser.exit()


class _Parser(argparse.ArgumentParser):
    """Its messages quote what was given, which may hold anything."""

    asked = "gpulab --help"
    """The command that prints the help of the mode."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"gpulab: {one_line(message)}\nsee {self.asked}\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(plain(message), file)


def _run_command(arguments: Sequence[str] | None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    own, command = _split(arguments)
    if command is not None and not any(argument in _HELP for argument in own):
        parser = _parser(Mode.FOLLOW if "--run" in own else Mode.SCREEN)
        return _guarded(lambda: _run_program(parser, own, command))
    if command is not None:
        arguments = [*own, _SEPARATOR]
    if any(argument in _HELP for argument in arguments):
        print(help_text(arguments), end="")
        return 0
    parser = _parser(_mode_named(arguments))
    return _guarded(lambda: _run_mode(parser, parser.parse_args(arguments)))


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str] | None]:
    """The command's own arguments, and those of a program after ` -- `; None where that is part of
    another mode.
    """
    if _SEPARATOR not in arguments:
        return arguments, None
    place = list(arguments).index(_SEPARATOR)
    own = arguments[:place]
    if _mode_named(own) not in (Mode.RUN, Mode.SCREEN):
        return arguments, None
    return own, arguments[place + 1 :]


def _guarded(run: Callable[[], int]) -> int:
    """Exit code 2 of a command that cannot be carried out as it was given."""
    try:
        return run()
    except SystemExit as ended:  # by argparse: a mistake, or --version
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
    chosen = next((mode_flag for mode_flag in MODES if mode_flag.is_chosen(given)), None)
    mode = chosen.mode if chosen else Mode.SCREEN
    if given.paths and mode == Mode.COMPARE:
        given.what = tuple(given.paths)
    elif given.paths and mode != Mode.SCREEN:
        advice = "pass it after --run or --list"
        if mode == Mode.NEW:
            advice = "--new FILE takes one name, and an exercise has a name of its own"
        parser.error(f"{given.paths[0]}: {advice}")
    if problem := flag_problem(mode, given):
        parser.error(problem)
    _check_features(given)
    if chosen is None:
        return _open_screen(parser, given)
    for flag in _FLAGS:
        if flag.command and hasattr(given, flag.destination):
            chosen = replace(chosen, function=flag.command)
    if chosen.screen and _has_terminal() and not _asks_to_print(given):
        # Nothing that is made before the first frame is garbage, and a collection takes 40 ms.
        gc.disable()
        return chosen.open_screen(given)
    return chosen.carry_out(given, lambda: _options(parser, given))


def _asks_to_print(given: argparse.Namespace) -> bool:
    """By a flag, or for the list of what can be replayed."""
    if getattr(given, "replay", None) == "":
        return True
    return any(hasattr(given, flag.destination) for flag in _FLAGS if flag.name != "--ascii")


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _run_program(
    parser: argparse.ArgumentParser, own: Sequence[str], command: Sequence[str]
) -> int:
    """Follow a program: headless where `--run` was given, else on the screen."""
    headless = "--run" in own
    given = parser.parse_args([argument for argument in own if argument != "--run"])
    if given.paths:
        parser.error(f"{given.paths[0]}: a program follows --, and nothing else runs beside it")
    if problem := flag_problem(Mode.FOLLOW if headless else Mode.SCREEN, given):
        parser.error(problem)
    _check_features(given)
    if not command:
        parser.error("write a program after --, such as: gpulab --run -- python train.py")
    if not headless:
        return _open_screen(parser, given, command)
    follow = function_of(Mode.FOLLOW, "gpulab.headless.program:follow")
    return int(follow(command, _options(parser, given)))


def _open_screen(
    parser: argparse.ArgumentParser, given: argparse.Namespace, command: Sequence[str] = ()
) -> int:
    for path in given.paths:
        if _is_scenario(path):
            parser.error(f"{path} is a scenario, not a file: gpulab --run {path} measures it")
    if not _has_terminal():
        parser.error(
            "the screen needs a terminal; without one use --list, --run, --guide or --help"
        )
    gc.disable()
    from gpulab.session.settings import Settings
    from gpulab.tui.app import open_lab

    settings = _refined(Settings, parser, given)
    ascii_only = hasattr(given, "ascii")
    return open_lab(given.paths, settings, ascii_only=ascii_only, command=command)


def _is_scenario(path: str) -> bool:
    """Whether there is no such file or folder, but a scenario of this name."""
    if os.path.lexists(path):
        return False
    from gpulab.catalog.catalog import ScenarioNotFoundError, find

    try:
        find(path)
    except ScenarioNotFoundError:
        return False
    return True


def _parser(mode: Mode) -> argparse.ArgumentParser:
    parser = _Parser(prog="gpulab", add_help=False)
    if mode != Mode.SCREEN:
        parser.asked = f"gpulab {'--run --help --' if mode == Mode.FOLLOW else f'{mode} --help'}"
    parser.add_argument("--version", action=_Version, nargs=0)
    parser.add_argument("paths", nargs="*", action="store")
    add_flags(parser)
    return parser


def _options(parser: argparse.ArgumentParser, given: argparse.Namespace) -> Options:
    from gpulab.headless.options import Options

    options = _refined(Options, parser, given)
    options.check_files()
    return options


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
    for name, problem in _NAMED_TWICE.items():
        if name in values and len(dict(values[name])) < len(values[name]):
            parser.error(problem)
    if "chosen" in values:
        values["chosen"] = dict(values["chosen"])
    return kind(**values)


_NAMED_TWICE = {
    "chosen": "--set gives one parameter twice",
    "fail_below": "--fail-below gives two thresholds for the same",
}
"""Of flags that may be given for each of several names."""


if __name__ == "__main__":
    sys.exit(main())
