"""The command line: flags to one mode, whose code is imported only then."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from textwrap import fill
from typing import Any, NoReturn

from gpulab.core.statuses import Verdict
from gpulab.core.text import one_line, plain
from gpulab.headless.standard_streams import (
    OUTPUT_LOST,
    OutputError,
    check_stdout,
    prepare,
    print_error,
)
from gpulab.modes import MODES, Mode, NotInstalledError, check_installed, function_of
from gpulab.options import Options, UsageError, flag_of, flags, helps, options_of

_HELP = ("-h", "--help")
_INTERRUPTED = 130
_SEPARATOR = "--"
"""Before the program that is followed, whose arguments are its own."""
_FLAGS = [mode for mode in Mode if mode not in (Mode.SCREEN, Mode.FOLLOW)]
_NAMED = {str(mode): mode for mode in _FLAGS} | {mode.lstrip("-"): mode for mode in _FLAGS}
"""The mode of `--run`, and of `run` as the first word."""
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
_RUN_EXAMPLES = """\
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
{verdicts}

exit codes:
  0 measured   2 usage   3 the scenario failed, or its needs are unmet
  4 wrong output   5 slower than --fail-below   6 inconclusive with --fail-below
  7 invalid   130 interrupted; of several the first of 130 2 3 4 7 5 6
  74 a file or a stream cannot be read or written (--json, --plot, --export)
"""


def _add_flags(
    parser: argparse._ActionsContainer, names: Sequence[str], help_of: Mapping[str, str]
) -> None:
    """Add the flags of a mode. What was not given is not in the namespace."""
    for name in names:
        flag = flag_of(name)
        how: dict[str, Any] = {"action": "store_true"}
        if flag.takes:
            how = {"metavar": flag.takes[0], "action": "append"}
        if flag.const is not None:
            how |= {"nargs": "?", "const": flag.const}
        how["help"] = help_of.get(name, "").replace("%", "%%")
        parser.add_argument(flag.name, dest=name, default=argparse.SUPPRESS, **how)


def flag_problem(mode: Mode, given: Sequence[str]) -> str | None:
    """Return which flags were given that the mode would ignore."""
    ignored = [flag_of(name) for name in given if mode not in flag_of(name).modes]
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


_TWO_RUNS = {Mode.RUN: "--run WHAT", Mode.FOLLOW: "--run -- PROGRAM"}
"""Where one of them is meant and not the other."""


def help_text(arguments: Sequence[str]) -> str:
    """The modes, where help alone is asked for; else the page of the mode that is chosen."""
    if all(argument in _HELP for argument in arguments):
        return _OVERVIEW.format(modes="\n".join(_mode_columns()))
    own, program = _split(arguments)
    mode = _mode_of(own, program)
    chosen = MODES[mode]
    usage = f"{'' if mode == Mode.SCREEN else mode.partition(' ')[0]} {chosen.usage}".strip()
    page = argparse.ArgumentParser(
        usage=f"gpulab {usage}{'' if mode == Mode.FOLLOW else ' [flags]'}",
        description=fill(chosen.about, 79),
        epilog=_RUN_EXAMPLES.format(verdicts="\n".join(_verdicts())) if mode == Mode.RUN else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    of_mode = [name for name, flag in flags().items() if mode in flag.modes]
    for title in dict.fromkeys(flag_of(name).title for name in of_mode):
        group = page.add_argument_group(title)
        taken = [name for name in of_mode if flag_of(name).title == title]
        _add_flags(group, taken, helps())
    return page.format_help()


def _mode_columns() -> Iterator[str]:
    """All modes, for the overview."""
    cells = [f"{each.mode:<13}{each.help}" for each in MODES.values() if each.help]
    cells.append(f"--version    gpulab {_version()}")
    half = (len(cells) + 1) // 2
    for left, right in zip_longest(cells[:half], cells[half:], fillvalue=""):
        yield f"  {left:<39}{right}".rstrip()


def _verdicts() -> Iterator[str]:
    """The words of each meaning, for the help of `--run`."""
    words: dict[str, list[str]] = {}
    for verdict in Verdict:
        words.setdefault(verdict.meaning, []).append(verdict)
    for meaning, those in words.items():
        if meaning:
            yield f"  {', '.join(those):<14}  {meaning}"


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


class _Parser(argparse.ArgumentParser):
    """Its messages quote what was given, which may hold anything."""

    asked = "gpulab --help"
    """The command that prints the help of the mode."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"gpulab: {one_line(message)}\nsee {self.asked}\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(plain(message), file)


def _run_command(arguments: Sequence[str] | None) -> int:
    own, program = _split(sys.argv[1:] if arguments is None else arguments)
    if any(argument in _HELP for argument in own):
        print(help_text([*own, *([_SEPARATOR] if program is not None else [])]), end="")
        return 0
    if "--version" in own:
        print(f"gpulab {_version()}")
        return 0
    return _guarded(partial(_run_mode, own, program))


def _split(arguments: Sequence[str]) -> tuple[list[str], Sequence[str] | None]:
    """The command's own arguments, the mode as a flag; and what follows ` -- `, None without it."""
    own = list(arguments)
    after = None
    if _SEPARATOR in own:
        place = own.index(_SEPARATOR)
        own, after = own[:place], own[place + 1 :]
    if own and own[0] in _NAMED:
        own[0] = _NAMED[own[0]]
    for place, argument in enumerate(own):
        name, equals, value = argument.partition("=")
        if equals and name in _FLAGS:
            own[place : place + 1] = [name, value]
    return own, after


def _mode_of(own: Sequence[str], after: Sequence[str] | None) -> Mode:
    named = next((_NAMED[argument] for argument in own if argument in _FLAGS), Mode.SCREEN)
    return Mode.FOLLOW if named == Mode.RUN and after is not None else named


def _guarded(run: Callable[[], int]) -> int:
    """Exit code 2 of a command that cannot be carried out as it was given."""
    try:
        return run()
    except SystemExit as ended:  # by argparse: a mistake
        return int(ended.code or 0)
    except UsageError as error:
        from gpulab.report.sentences import with_reason

        print_error(with_reason(str(error), error.reason))
    except NotInstalledError as error:
        print_error(str(error))
    except LookupError as error:
        from gpulab.catalog.catalog import ScenarioNotFoundError

        if not isinstance(error, ScenarioNotFoundError):
            raise
        print_error(str(error.args[0]))
    return 2


def _run_mode(own: Sequence[str], after: Sequence[str] | None) -> int:
    mode = _mode_of(own, after)
    parser = _parser(mode)
    given = vars(parser.parse_intermixed_args(own))
    words = [str(word) for word in given.pop("words")]
    given.pop("mode", None)
    for name, values in given.items():
        if isinstance(values, list) and not flag_of(name).several:
            if len(values) > 1:
                parser.error(f"argument {flag_of(name).name}: given twice: write it once")
            (given[name],) = values
    if problem := flag_problem(mode, list(given)):
        parser.error(problem)
    program = after if mode in (Mode.SCREEN, Mode.FOLLOW) else None
    if program is not None and words:
        parser.error(f"{words[0]}: a program follows --, and nothing else runs beside it")
    if program is not None and not program:
        parser.error("write a program after --, such as: gpulab --run -- python train.py")
    options, command = _options(mode, given)
    if mode == Mode.SCREEN:
        return _open_screen(parser, words, options, program or ())
    if mode == Mode.COMPARE:
        options = replace(options, what=tuple(after or ()))
    else:
        words += after or ()
    asks_to_print = any(name != "ascii" for name in given) or (mode == Mode.REPLAY and not words)
    screen = MODES[mode].screen
    if screen and _has_terminal() and not asks_to_print:
        # Nothing that is made before the first frame is garbage, and a collection takes 40 ms.
        gc.disable()
        command = screen
    function = function_of(mode, command)
    least, most = MODES[mode].words
    if not least <= len(words) <= most:
        parser.error(f"{mode} takes {MODES[mode].usage or 'no name'}")
    if most == 0:
        return int(function(options))
    if most == 1:
        return int(function(words[0] if words else "", options))
    return int(function(words, options))


def _options(mode: Mode, given: Mapping[str, object]) -> tuple[Options, str]:
    """Those of a command, with defaults, and what carries it out. UsageError, NotInstalledError."""
    from gpulab.defaults import defaults_of

    defaults = defaults_of(mode)
    command = MODES[mode].function
    for name in {**defaults, **given}:
        flag = flag_of(name)
        if flag.feature:
            check_installed(flag.name, flag.feature)
        if flag.command and mode != Mode.FOLLOW:
            command = f"gpulab.features.{flag.feature}.command:{flag.command}"
    options = options_of(given, defaults, mode)
    if options.given("json", "junit", "plot", "export", "trace"):
        from gpulab.headless.written import check_outputs

        check_outputs(options)
    return options, command


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _open_screen(
    parser: argparse.ArgumentParser, paths: Sequence[str], options: Options, program: Sequence[str]
) -> int:
    for path in paths:
        if _is_scenario(path):
            parser.error(f"{path} is a scenario, not a file: gpulab --run {path} measures it")
    if not _has_terminal():
        parser.error(
            "the screen needs a terminal; without one use --list, --run, --guide or --help"
        )
    gc.disable()
    of_class = "gpulab.tui.teaching:open_class"
    open_lab = function_of(
        Mode.SCREEN, MODES[Mode.SCREEN].function if options.class_name is None else of_class
    )
    return int(open_lab(paths, options, program))


def _is_scenario(path: str) -> bool:
    """Return whether there is no such file or folder, but a scenario of this name."""
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
    parser.add_argument("words", nargs="*")
    modes = parser.add_mutually_exclusive_group()
    for flag in _FLAGS:
        modes.add_argument(flag, dest="mode", action="store_const", const=flag)
    _add_flags(parser, list(flags()), {})
    return parser


if __name__ == "__main__":
    sys.exit(main())
