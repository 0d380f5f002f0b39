"""The flags of the command line: their values, those that choose a mode, and those that refine
it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

from gpulab.core.limits import LARGEST_INTEGER, SPEEDUPS, TIME_S, VARIANTS
from gpulab.scenario import shown


def setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{shown(text)}: write NAME=VALUE")
    return name, value


def seconds(text: str) -> float:
    value = _number(text)
    if not 0 < value <= TIME_S:
        message = f"{shown(text)} is not a number of seconds above 0, and at most {TIME_S:.0f}"
        raise argparse.ArgumentTypeError(message)
    return value


def architecture(text: str) -> str:
    if not re.fullmatch(r"sm_[0-9]{2,3}[a-z]?", text):
        raise argparse.ArgumentTypeError(
            f"{shown(text)} is not an architecture, such as sm_80, sm_90, sm_100"
        )
    return text


def seed(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or abs(int(text)) > LARGEST_INTEGER:
        message = (
            f"{shown(text)} is not a whole number between {-LARGEST_INTEGER} and {LARGEST_INTEGER}"
        )
        raise argparse.ArgumentTypeError(message)
    return int(text)


def telemetry(text: str) -> str:
    if not re.fullmatch(r"on|off|[0-9]{1,4}|(GPU|MIG)-[a-zA-Z0-9_./-]{1,90}", text):
        message = (
            f"{shown(text)} is not on, off, or a GPU's index or UUID (nvidia-smi -L lists them)"
        )
        raise argparse.ArgumentTypeError(message)
    return text


def repetitions(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,3}", text) or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a number of runs, 2 or more")
    return int(text)


def count(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,3}", text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a number of threads, 1 or more")
    return int(text)


def operations(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,2}", text) or int(text) > VARIANTS:
        raise argparse.ArgumentTypeError(
            f"{shown(text)} is not a number of operations from 1 to {VARIANTS}"
        )
    return int(text)


def steps(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,11}", text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a number of steps, 1 or more")
    return int(text)


def path(text: str) -> Path:
    """A file that results name, so that its name must be text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{shown(text)}: write a path in UTF-8") from None
    return Path(text)


def trace(text: str) -> Path:
    file = path(text)
    try:
        fits = file.suffix == ".json" and file.absolute().parent.is_dir()
    except OSError:  # a name that is too long, or the folder one stands in was deleted
        fits = False
    if not fits:
        raise argparse.ArgumentTypeError(f"{shown(text)}: write FILE.json, in a folder that exists")
    return file


def speedup(text: str) -> float:
    value = _number(text.removesuffix("x"))
    if not SPEEDUPS[0] <= value <= SPEEDUPS[1]:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a speedup, such as 1.2x")
    return value


def width(text: str) -> float:
    """0.2%, or the same as a share: 0.002."""
    value = _number(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a share of a speedup, such as 0.2%")
    return value


def _number(text: str) -> float:
    """The number, or 0 where it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0


class Mode(StrEnum):
    """What to do, by the flag that chooses it; the screen has none."""

    SCREEN = "the screen"
    LIST = "--list"
    RUN = "--run"
    OBSERVER = "--observer-effect"
    CALIBRATE = "--calibrate"
    DOCTOR = "--doctor"
    NEW = "--new"
    FROM_TRACE = "--from-trace"
    SHOW = "--show"
    GUIDE = "--guide"


@dataclass(frozen=True)
class Flag:
    """`options` are those of argparse; its default is always that the flag was not given."""

    name: str
    modes: frozenset[Mode]
    options: Mapping[str, Any]

    @property
    def destination(self) -> str:
        return str(self.options.get("dest", self.name.lstrip("-").replace("-", "_")))


@dataclass(frozen=True)
class ModeFlag:
    """A flag that chooses a mode, with its options of argparse.

    `function`, as module:name, carries the mode out: it gets the value of the flag, where it has
    one, and the options of the command, and returns the exit code. It is imported only then.
    """

    mode: Mode
    function: str
    options: Mapping[str, Any]

    @property
    def destination(self) -> str:
        return self.mode.lstrip("-").replace("-", "_")

    def is_chosen(self, given: argparse.Namespace) -> bool:
        return hasattr(given, self.destination)

    def carry_out(self, given: argparse.Namespace, options: Any) -> int:
        module, _, name = self.function.partition(":")
        value = getattr(given, self.destination)
        function = getattr(import_module(module), name)
        return int(function(options) if value is True else function(value, options))


def _flag(name: str, modes: frozenset[Mode], **options: Any) -> Flag:
    return Flag(name, modes, options)


MODES = (
    ModeFlag(
        Mode.LIST,
        "gpulab.headless.list:show_list",
        {"nargs": "*", "metavar": "PATH", "help": "list the scenarios, those of PATH first"},
    ),
    ModeFlag(
        Mode.RUN,
        "gpulab.headless.run:run",
        {
            "nargs": "+",
            "action": "extend",
            "metavar": "WHAT",
            "help": "a scenario's name, FILE, FILE:function[,function], a folder, or all",
        },
    ),
    ModeFlag(
        Mode.SHOW,
        "gpulab.headless.show:show",
        {
            "metavar": "WHAT[:VARIANT]",
            "help": (
                "print the code of a scenario's variants with the lines that differ, and what "
                "the compiler made of CUDA kernels"
            ),
        },
    ),
    ModeFlag(
        Mode.GUIDE,
        "gpulab.headless.guide:show_guide",
        {
            "nargs": "*",
            "metavar": "PAGE",
            "help": "print a page of the manual, or its pages; course LESSON: its questions",
        },
    ),
    ModeFlag(
        Mode.DOCTOR,
        "gpulab.headless.doctor:show_doctor",
        {"action": "store_true", "help": "what this machine has, what is missing, how to fix it"},
    ),
    ModeFlag(
        Mode.CALIBRATE,
        "gpulab.headless.calibrate:calibrate",
        {"action": "store_true", "help": "measure the device's ceilings, and draw its roofline"},
    ),
    ModeFlag(
        Mode.NEW,
        "gpulab.headless.new:new",
        {
            "nargs": "?",
            "const": "",
            "metavar": "FILE",
            "help": "write a small scenario to start from, or an exercise",
        },
    ),
    ModeFlag(
        Mode.FROM_TRACE,
        "gpulab.headless.from_trace:from_trace",
        {
            "nargs": "+",
            "metavar": ("TRACE", "FILE"),
            "help": (
                "write a scenario of the heaviest operations of a torch trace (to "
                "TRACE_operations.py)"
            ),
        },
    ),
)

_SHOWS = frozenset({Mode.SHOW})
_ONLY_RUN = frozenset({Mode.RUN})
_RUNS = frozenset({Mode.SCREEN, Mode.RUN})
_MEASURES = _RUNS | {Mode.OBSERVER}
_ON_A_DEVICE = _MEASURES | {Mode.CALIBRATE}
_WITH_FILES = frozenset({Mode.RUN, Mode.OBSERVER, Mode.CALIBRATE})

GROUPS: Mapping[str, Sequence[Flag]] = {
    "how to run it": (
        _flag(
            "--device",
            _ON_A_DEVICE,
            metavar="cuda:N|cpu",
            help="default: cuda:0 where there is one, else cpu",
        ),
        _flag(
            "--set",
            _MEASURES | {Mode.SHOW},
            dest="chosen",
            action="append",
            type=setting,
            metavar="NAME=VALUE",
            help="a parameter of the scenario",
        ),
        _flag(
            "--sweep",
            _ONLY_RUN,
            nargs="?",
            const="",
            metavar="NAME=A,B,C",
            help=(
                "one run for each value of a parameter; NAME alone, or nothing, takes the "
                "scenario's own"
            ),
        ),
        _flag(
            "--repeat",
            _ONLY_RUN,
            type=repetitions,
            metavar="N",
            help="measure N times in fresh processes: the interval over runs, 99 %% from 8 on",
        ),
        _flag(
            "--every",
            _ONLY_RUN,
            dest="every_s",
            type=seconds,
            metavar="S",
            help="with --repeat: start one every S seconds",
        ),
        _flag(
            "--time",
            _MEASURES,
            dest="time_s",
            type=seconds,
            metavar="S",
            help=(
                "seconds of rounds a scenario may take (10; it stops early when intervals are "
                "narrow)"
            ),
        ),
        _flag(
            "--width",
            _RUNS,
            type=width,
            metavar="0.2%",
            help=(
                "measure until every interval is within so much of its speedup (1%%), or --time "
                "is spent"
            ),
        ),
        _flag("--threads", _ON_A_DEVICE, type=count, metavar="N", help="CPU threads of torch (1)"),
        _flag(
            "--seed",
            _ON_A_DEVICE,
            type=seed,
            metavar="N",
            help="seed for data and variant order (fresh)",
        ),
        _flag("--smoke", _MEASURES, action="store_true", help="tiny sizes, to see whether it runs"),
        _flag(
            "--timeout",
            _ON_A_DEVICE,
            dest="timeout_s",
            type=seconds,
            metavar="S",
            help="stop a run after so long (by default after 10 minutes without progress)",
        ),
        _flag(
            "--telemetry",
            _ON_A_DEVICE,
            type=telemetry,
            metavar="on|off|GPU",
            help="sample the run's own device (on), nothing, or a GPU by its index or UUID",
        ),
        _flag(
            "--observer-effect",
            frozenset({Mode.OBSERVER}),
            action="store_true",
            help=(
                "measure what telemetry does to the times of one scenario: on and off in turn, a "
                "ratio with its interval; requires --run"
            ),
        ),
        _flag(
            "--retune",
            _ONLY_RUN,
            action="store_true",
            help="measure again what gpulab.tune chose in earlier runs",
        ),
        _flag(
            "--quick",
            _RUNS,
            action="store_true",
            help="shorter and less precise runs, each marked as such",
        ),
        _flag(
            "--profile",
            _RUNS,
            choices=("on", "off", "all"),
            help=(
                "show where the time of a step goes, in a second process after the measurement: "
                "of the baseline and the fastest variant (on; with --repeat in the first run), "
                "or of all"
            ),
        ),
    ),
    "what to show": (
        _flag("--ptx", _SHOWS, action="store_true", help="the kernels as PTX"),
        _flag(
            "--sass", _SHOWS, action="store_true", help="the kernels as machine code, disassembled"
        ),
        _flag(
            "--arch",
            _SHOWS,
            type=architecture,
            metavar="sm_90",
            help="the architecture to compile for (sm_90)",
        ),
    ),
    "what to write": (
        _flag(
            "--exercise",
            frozenset({Mode.NEW}),
            nargs="?",
            const="",
            metavar="NAME",
            help=(
                "a slow function to make fast, which --run then judges; without NAME: which "
                "there are"
            ),
        ),
        _flag(
            "--solution",
            frozenset({Mode.NEW}),
            action="store_true",
            help="with --exercise: a reference solution, once you have run an attempt of your own",
        ),
        _flag(
            "--top",
            frozenset({Mode.FROM_TRACE}),
            type=operations,
            metavar="N",
            help="so many of them (10)",
        ),
    ),
    "what to print and keep": (
        _flag(
            "--json",
            _WITH_FILES | {Mode.LIST, Mode.DOCTOR},
            nargs="?",
            const="-",
            metavar="FILE",
            help="the result as JSON, to FILE or to stdout",
        ),
        _flag(
            "--output",
            _WITH_FILES,
            type=path,
            metavar="FILE",
            help="the run file: every event and raw sample (a folder for several)",
        ),
        _flag(
            "--fail-below",
            _ONLY_RUN,
            dest="required_speedup",
            type=speedup,
            metavar="1.2x",
            help="exit 5 where a comparison is below, 6 where it is inconclusive",
        ),
        _flag(
            "--plot",
            frozenset({Mode.RUN, Mode.CALIBRATE}),
            type=path,
            metavar="FILE.png|svg|pdf",
            help="a picture for slides: roofline, and times with intervals",
        ),
        _flag(
            "--trace",
            _ONLY_RUN,
            type=trace,
            metavar="FILE.json",
            help="a trace of the profiled steps, for Perfetto or chrome://tracing",
        ),
        _flag(
            "--memory",
            _ONLY_RUN,
            action="store_true",
            help="the most memory that a step allocates; on a GPU with a snapshot of it",
        ),
        _flag(
            "--from-start",
            _ONLY_RUN,
            nargs="?",
            const=0,
            type=steps,
            metavar="STEPS",
            help=(
                "goodput of a whole job from process start: imports, build, first step, and so "
                "many steps (those that the baseline takes in a minute)"
            ),
        ),
        _flag(
            "--verbose",
            _ONLY_RUN,
            action="store_true",
            help="every check of each comparison, and all notes",
        ),
        _flag("--ascii", frozenset(Mode), action="store_true", help="no character outside ASCII"),
    ),
}
