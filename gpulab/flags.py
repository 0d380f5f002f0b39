"""The flags of the command line: those that choose a mode, and those that refine it, with the modes that take them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Any

from gpulab import flag_values


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

    `function`, as module:name, carries the mode out: it gets the value of the flag, where it has one, and the options
    of the command, and returns the exit code. It is imported only then.
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
            "help": "print the code of a scenario's variants with the lines that differ, and what the compiler made of "
            "CUDA kernels",
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
        {"nargs": "?", "const": "", "metavar": "FILE", "help": "write a small scenario to start from, or an exercise"},
    ),
    ModeFlag(
        Mode.FROM_TRACE,
        "gpulab.headless.from_trace:from_trace",
        {
            "nargs": "+",
            "metavar": ("TRACE", "FILE"),
            "help": "write a scenario of the heaviest operations of a torch trace (to TRACE_operations.py)",
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
        _flag("--device", _ON_A_DEVICE, metavar="cuda:N|cpu", help="default: cuda:0 where there is one, else cpu"),
        _flag(
            "--set",
            _MEASURES | {Mode.SHOW},
            dest="chosen",
            action="append",
            type=flag_values.setting,
            metavar="NAME=VALUE",
            help="a parameter of the scenario",
        ),
        _flag(
            "--sweep",
            _ONLY_RUN,
            nargs="?",
            const="",
            metavar="NAME=A,B,C",
            help="one run for each value of a parameter; NAME alone, or nothing, takes the scenario's own",
        ),
        _flag(
            "--repeat",
            _ONLY_RUN,
            type=flag_values.repetitions,
            metavar="N",
            help="measure N times in fresh processes: the interval over runs, 99 %% from 8 on",
        ),
        _flag(
            "--every",
            _ONLY_RUN,
            dest="every_s",
            type=flag_values.seconds,
            metavar="S",
            help="with --repeat: start one every S seconds",
        ),
        _flag(
            "--time",
            _MEASURES,
            dest="time_s",
            type=flag_values.seconds,
            metavar="S",
            help="seconds of rounds a scenario may take (10; it stops early when intervals are narrow)",
        ),
        _flag(
            "--width",
            _RUNS,
            type=flag_values.width,
            metavar="0.2%",
            help="measure until every interval is within so much of its speedup (1%%), or --time is spent",
        ),
        _flag("--threads", _ON_A_DEVICE, type=flag_values.count, metavar="N", help="CPU threads of torch (1)"),
        _flag(
            "--seed", _ON_A_DEVICE, type=flag_values.seed, metavar="N", help="seed for data and variant order (fresh)"
        ),
        _flag("--smoke", _MEASURES, action="store_true", help="tiny sizes, to see whether it runs"),
        _flag(
            "--timeout",
            _ON_A_DEVICE,
            dest="timeout_s",
            type=flag_values.seconds,
            metavar="S",
            help="stop a run after so long (by default after 10 minutes without progress)",
        ),
        _flag(
            "--telemetry",
            _ON_A_DEVICE,
            type=flag_values.telemetry,
            metavar="on|off|GPU",
            help="sample the run's own device (on), nothing, or a GPU by its index or UUID",
        ),
        _flag(
            "--observer-effect",
            frozenset({Mode.OBSERVER}),
            action="store_true",
            help="measure what telemetry does to the times of one scenario: on and off in turn, a ratio with its "
            "interval; requires --run",
        ),
        _flag("--retune", _ONLY_RUN, action="store_true", help="measure again what gpulab.tune chose in earlier runs"),
        _flag("--quick", _RUNS, action="store_true", help="shorter and less precise runs, each marked as such"),
        _flag(
            "--profile",
            _RUNS,
            choices=("on", "off", "all"),
            help="show where the time of a step goes, in a second process after the measurement: of the baseline and "
            "the fastest variant (on; with --repeat in the first run), or of all",
        ),
    ),
    "what to show": (
        _flag("--ptx", _SHOWS, action="store_true", help="the kernels as PTX"),
        _flag("--sass", _SHOWS, action="store_true", help="the kernels as machine code, disassembled"),
        _flag(
            "--arch",
            _SHOWS,
            type=flag_values.architecture,
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
            help="a slow function to make fast, which --run then judges; without NAME: which there are",
        ),
        _flag(
            "--solution",
            frozenset({Mode.NEW}),
            action="store_true",
            help="with --exercise: a reference solution, once you have run an attempt of your own",
        ),
        _flag(
            "--top", frozenset({Mode.FROM_TRACE}), type=flag_values.operations, metavar="N", help="so many of them (10)"
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
            type=flag_values.path,
            metavar="FILE",
            help="the run file: every event and raw sample (a folder for several)",
        ),
        _flag(
            "--fail-below",
            _ONLY_RUN,
            dest="required_speedup",
            type=flag_values.speedup,
            metavar="1.2x",
            help="exit 5 where a comparison is below, 6 where it is inconclusive",
        ),
        _flag(
            "--plot",
            frozenset({Mode.RUN, Mode.CALIBRATE}),
            type=flag_values.path,
            metavar="FILE.png|svg|pdf",
            help="a picture for slides: roofline, and times with intervals",
        ),
        _flag(
            "--trace",
            _ONLY_RUN,
            type=flag_values.trace,
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
            type=flag_values.steps,
            metavar="STEPS",
            help="goodput of a whole job from process start: imports, build, first step, and so many steps "
            "(those that the baseline takes in a minute)",
        ),
        _flag("--verbose", _ONLY_RUN, action="store_true", help="every check of each comparison, and all notes"),
        _flag("--ascii", frozenset(Mode), action="store_true", help="no character outside ASCII"),
    ),
}
