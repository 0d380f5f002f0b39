"""The command line: flags to one mode, whose code is imported only then."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import gpulab

if TYPE_CHECKING:
    from gpulab.run.request import Settings

Refined = TypeVar("Refined", bound="Settings")
_DESCRIPTION = """\
A lab for GPU performance. A scenario holds variants of the same work; gpulab
measures them in a background process, side by side and again and again on fresh
builds, checks that they compute the same, and says which is faster, by how much,
and how sure that is.
"""
_EXAMPLES = """\
examples:
  gpulab                                     open the screen: choose, run, watch
  gpulab --calibrate                         what this device can do at best
  gpulab --list                              what there is, what is lacking here
  gpulab --run batched_matmul                measure a lesson, print the table
  gpulab --run batched_matmul --set n=128    with another parameter
  gpulab --run batched_matmul --sweep n=16,64,256   a curve: one run a value
  gpulab --new my_step.py                    write a scenario to start from
  gpulab --run my_step.py                    measure a scenario of your own
  gpulab --run train.py:step --trace t.json  time a plain function of any file, see where its time goes
  gpulab --run my_step.py --fail-below 1.2x  in CI: exit 5 where it is slower
  gpulab --run all                           the whole library, one table at its end
  gpulab --run all --quick --json all.json   for the impatient, and for a script

verdicts:
  faster, slower  the 99 % interval of the speedup lies beyond 1 %
  same            it lies within 2 % of 1x
  inconclusive    it is too wide for either
  wrong           the output is not the baseline's
  invalid         no fair comparison, or the lab's own control failed

exit codes:
  0 measured   2 usage   3 the scenario failed, or its needs are unmet
  4 wrong output   5 slower than --fail-below   6 not sure to reach it
  7 invalid   130 interrupted; of several the first of 130 2 3 4 7 5 6
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        return _mode(parser, given)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of a pipe, such as head, went away: nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (ValueError, LookupError) as error:
        from gpulab.run.catalog import ScenarioNotFoundError
        from gpulab.run.request import UsageError

        if not isinstance(error, (ScenarioNotFoundError, UsageError)):
            raise
        print(f"gpulab: {error.args[0]}", file=sys.stderr)
        return 2


def _mode(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    if given.paths and (given.list is not None or given.new or given.run or given.doctor or given.calibrate):
        parser.error(f"{given.paths[0]}: put it behind --run or --list")
    if not given.run:
        _only_with_run(parser, given)
    if given.list is not None:
        from gpulab.headless.list import show_list

        return show_list(given.list, json=given.json, ascii_only=given.ascii)
    if given.doctor:
        from gpulab.headless.doctor import show_doctor

        return show_doctor(json=given.json, ascii_only=given.ascii)
    if given.calibrate:
        from gpulab.headless.calibrate import calibrate
        from gpulab.headless.run import Options

        return calibrate(_refined(Options, parser, given))
    if given.new:
        from gpulab.headless.new import new

        return new(given.new)
    if given.run:
        from gpulab.headless.run import Options, run

        if given.observer_effect:
            from gpulab.headless.observer import observer_effect

            if len(given.run) != 1 or given.sweep is not None or given.plot or given.telemetry == "off":
                parser.error("--observer-effect goes with one scenario, without --sweep or --plot, with its telemetry")
            return observer_effect(given.run[0], _refined(Options, parser, given))
        return run(given.run, _refined(Options, parser, given))
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        parser.error("the screen needs a terminal; without one there are --list, --run and --help")
    from gpulab.run.request import Settings
    from gpulab.tui.app import open_lab

    return open_lab(given.paths, _refined(Settings, parser, given), ascii_only=given.ascii)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpulab", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"gpulab {gpulab.__version__}")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="open the screen, with the scenarios of PATH first")
    modes = parser.add_argument_group("what to do").add_mutually_exclusive_group()
    modes.add_argument("--list", nargs="*", metavar="PATH", help="list the scenarios, those of PATH first")
    modes.add_argument(
        "--run",
        nargs="+",
        action="extend",
        metavar="WHAT",
        help="a scenario's name, FILE, FILE:function[,function], a folder, or all",
    )
    modes.add_argument("--doctor", action="store_true", help="what this machine has, what is missing, what mends it")
    modes.add_argument("--calibrate", action="store_true", help="measure the device's ceilings, and draw its roofline")
    modes.add_argument("--new", metavar="FILE", help="write a small scenario to start from")
    refine = parser.add_argument_group("how to run it")
    refine.add_argument("--device", metavar="cuda:N|cpu", help="default: cuda:0 where there is one, else cpu")
    refine.add_argument(
        "--set",
        dest="chosen",
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        help="a parameter of the scenario",
    )
    refine.add_argument(
        "--sweep",
        nargs="?",
        const="",
        metavar="NAME=A,B,C",
        help="one run for each value of a parameter; NAME alone, or nothing, takes the scenario's own",
    )
    refine.add_argument(
        "--time",
        dest="time_s",
        type=_positive,
        metavar="S",
        help="seconds of rounds a scenario may take (10; it stops when sure)",
    )
    refine.add_argument("--threads", type=_count, default=1, metavar="N", help="CPU threads of torch (1)")
    refine.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the data and of the order (0)")
    refine.add_argument("--smoke", action="store_true", help="tiny sizes, to see whether it runs")
    refine.add_argument(
        "--timeout",
        dest="timeout_s",
        type=_positive,
        metavar="S",
        help="stop a run after so long (600, or 20 x --time)",
    )
    refine.add_argument(
        "--telemetry",
        type=_telemetry,
        default="on",
        metavar="on|off|GPU",
        help="sample the run's own device (on), nothing, or a GPU by its index or UUID",
    )
    refine.add_argument(
        "--observer-effect",
        action="store_true",
        help="measure what telemetry does to the times of one scenario: on and off in turn, a ratio with its interval",
    )
    refine.add_argument(
        "--quick", action="store_true", help="for the impatient: short runs with wide intervals, each marked as such"
    )
    refine.add_argument(
        "--profile",
        choices=("on", "off"),
        default="on",
        help="show where the time of a step goes, in a second process after the measurement (on)",
    )
    output = parser.add_argument_group("what to print and keep")
    output.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the result as JSON, to FILE or to stdout")
    output.add_argument(
        "--output", type=Path, metavar="FILE", help="the run file: every event and raw sample (a folder for several)"
    )
    output.add_argument(
        "--fail-below", type=_speedup, metavar="1.2x", help="exit 5 where a comparison is below, 6 where unsure"
    )
    output.add_argument(
        "--plot", type=Path, metavar="FILE.png|svg|pdf", help="a picture for slides: roofline, and times with intervals"
    )
    output.add_argument(
        "--trace",
        type=_trace,
        metavar="FILE.json",
        help="a trace of the profiled steps, for Perfetto or chrome://tracing",
    )
    output.add_argument(
        "--memory", action="store_true", help="the most memory that a step allocates; on a GPU with a snapshot of it"
    )
    output.add_argument("--ascii", action="store_true", help="no character outside ASCII")
    return parser


def _only_with_run(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Options that another mode would silently ignore."""
    asked = {"--sweep": given.sweep, "--fail-below": given.fail_below}
    asked |= {"--trace": given.trace, "--memory": given.memory or None}
    asked["--observer-effect"] = given.observer_effect or None
    if not given.calibrate:
        asked["--output"] = given.output
        asked["--plot"] = given.plot
    if given.list is None and not given.doctor and not given.calibrate:
        asked["--json"] = given.json
    for option, value in asked.items():
        if value is not None:
            parser.error(f"{option} goes with --run")


def _refined(kind: type[Refined], parser: argparse.ArgumentParser, given: argparse.Namespace) -> Refined:
    """The options of one mode, by the names of its fields."""
    values = {one.name: getattr(given, one.name) for one in fields(kind)}
    values["chosen"] = dict(given.chosen)
    if len(values["chosen"]) < len(given.chosen):
        parser.error("--set gives one parameter twice")
    return kind(**values)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r}: write NAME=VALUE")
    return name, value


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def _telemetry(text: str) -> str:
    if not re.fullmatch(r"on|off|\d+|(GPU|MIG)-[\w./-]+", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not on, off, or a GPU's index or UUID (nvidia-smi -L lists them)"
        )
    return text


def _count(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of threads, 1 or more")
    return int(text)


def _trace(text: str) -> Path:
    path = Path(text)
    if path.suffix != ".json" or not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r}: write FILE.json, in a folder that is there")
    return path


def _speedup(text: str) -> float:
    try:
        return _positive(text.removesuffix("x"))
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a speedup, such as 1.2x") from None


if __name__ == "__main__":
    sys.exit(main())
