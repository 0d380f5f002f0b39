"""The flags of the command line: the values they take, the modes they choose and refine."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

from gpulab.core.host import with_task
from gpulab.core.limits import LARGEST_INTEGER, RANKS, SPEEDUPS, TIME_S, VARIANTS
from gpulab.core.statuses import GroupBy, SortBy
from gpulab.scenario import shown


def setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{shown(text)}: write NAME=VALUE")
    return name, value


def seconds(text: str) -> float:
    value = _number(text)
    if not 0 < value <= TIME_S:
        raise _not_a(text, f"a number of seconds above 0 and at most {TIME_S:.0f}")
    return value


def architecture(text: str) -> str:
    if not re.fullmatch(r"sm_[0-9]{2,3}[a-z]?", text):
        raise _not_a(text, "an architecture, such as sm_80, sm_90, sm_100")
    return text


def address(text: str) -> str:
    if not re.fullmatch(r"([0-9A-Za-z.-]+:|\[[0-9A-Fa-f:]+\]:)?[0-9]{1,5}", text):
        raise _not_a(text, "a port or HOST:PORT, such as 8000 or 0.0.0.0:8000")
    if int(text.rpartition(":")[2]) > 65535:
        raise _not_a(text, "a port up to 65535")
    return text


def ranks(text: str) -> int:
    return _whole(text, 2, RANKS, f"a number of processes from 2 to {RANKS}")


def seed(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or abs(int(text)) > LARGEST_INTEGER:
        raise _not_a(text, f"a whole number between {-LARGEST_INTEGER} and {LARGEST_INTEGER}")
    return int(text)


TELEMETRY = re.compile(r"on|off|[0-9]{1,4}|(GPU|MIG)-[a-zA-Z0-9_./-]{1,90}")
PROFILES = ("on", "off", "all")


def telemetry(text: str) -> str:
    if not TELEMETRY.fullmatch(text):
        raise _not_a(text, "on, off, or a GPU's index or UUID (nvidia-smi -L lists them)")
    return text


def repetitions(text: str) -> int:
    return _whole(text, 2, 9999, "a number of runs, 2 or more")


def count(text: str) -> int:
    return _whole(text, 1, 9999, "a number of threads, 1 or more")


def operations(text: str) -> int:
    return _whole(text, 1, VARIANTS, f"a number of operations from 1 to {VARIANTS}")


def steps(text: str) -> int:
    return _whole(text, 1, 10**12 - 1, "a number of steps, 1 or more")


def _whole(text: str, least: int, most: int, what: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,11}", text) or not least <= int(text) <= most:
        raise _not_a(text, what)
    return int(text)


def _not_a(text: str, what: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"{shown(text)} is not {what}")


def file_name(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("'': write the name of a file")
    return text


def path(text: str) -> Path:
    """A file that results name, so that its name must be text."""
    file_name(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{shown(text)}: write a path in UTF-8") from None
    return Path(text)


def output(text: str) -> Path:
    """A run file, or a folder of them: each of many tasks has its own."""
    return path(with_task(text))


def trace(text: str) -> Path:
    file = path(text)
    try:
        fits = file.suffix == ".json" and file.absolute().parent.is_dir()
    except OSError:  # a name that is too long, or a working directory that was deleted
        fits = False
    if not fits:
        raise argparse.ArgumentTypeError(f"{shown(text)}: write FILE.json, in a folder that exists")
    return file


def speedup(text: str) -> float:
    value = _number(text.removesuffix("x"))
    if not SPEEDUPS[0] <= value <= SPEEDUPS[1]:
        raise _not_a(text, "a speedup, such as 1.2x")
    return value


def least_speedup(text: str) -> tuple[str, float]:
    """A speedup, or VARIANT=SPEEDUP; the name is empty where there is none."""
    name, equals, value = text.rpartition("=")
    if equals and not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{shown(text)}: write 1.2x, or VARIANT=1.2x")
    return name, speedup(value)


def share(text: str) -> float:
    """3%, or the same as a share: 0.03."""
    value = _number(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 < value < 1:
        raise _not_a(text, "a share of the time, such as 3%")
    return value


def width(text: str) -> float:
    """0.2%, or the same as a share: 0.002."""
    value = _number(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 < value < 1:
        raise _not_a(text, "a share of a speedup, such as 0.2%")
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
    FOLLOW = "--run --"
    REPLAY = "--replay"
    SERVE = "--serve"
    COMPARE = "--compare"
    WATCH = "--watch"
    SHOW = "--show"
    CALIBRATE = "--calibrate"
    NEW = "--new"
    FROM_TRACE = "--from-trace"
    FLEET = "--fleet"
    HISTORY = "--history"
    DOCTOR = "--doctor"
    GUIDE = "--guide"


@dataclass(frozen=True)
class ModeFlag:
    """A flag that chooses a mode.

    `function`, as module:name, carries the mode out: it gets the value of the flag, where it has
    one, and the options of the command, and returns the exit code. It is imported only then.
    `options` are those of argparse; `help` is its line of `gpulab --help`, `about` the beginning of
    its own page of help.
    """

    mode: Mode
    function: str
    usage: str
    help: str
    about: str
    options: Mapping[str, Any]
    screen: str = ""

    @property
    def destination(self) -> str:
        return self.mode.lstrip("-").replace("-", "_")

    def is_chosen(self, given: argparse.Namespace) -> bool:
        return hasattr(given, self.destination)

    def carry_out(self, given: argparse.Namespace, options: Any) -> int:
        value = getattr(given, self.destination)
        function = _function(self.function)
        if value is True:
            return int(function(options))
        return int(function(value, options))

    def open_screen(self, given: argparse.Namespace) -> int:
        value = getattr(given, self.destination)
        return int(_function(self.screen)(value, ascii_only=hasattr(given, "ascii")))


def _function(place: str) -> Callable[..., Any]:
    """By module:name."""
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


MODES: Sequence[ModeFlag] = (
    ModeFlag(
        Mode.LIST,
        "gpulab.headless.list:show_list",
        "[PATH ...]",
        "scenarios, their needs",
        (
            "The scenarios, and what is missing to run them. Those of the files and folders in "
            "PATH come first."
        ),
        {"nargs": "*"},
    ),
    ModeFlag(
        Mode.RUN,
        "gpulab.headless.run:run",
        "WHAT [WHAT ...]",
        "measure, show the result",
        (
            "Measure scenarios or functions, and print the result. WHAT is a scenario's name, "
            "FILE, FILE:function[,function], a folder, or all."
        ),
        {"nargs": "+", "action": "extend"},
    ),
    ModeFlag(
        Mode.REPLAY,
        "gpulab.headless.replay:replay",
        "[RUN | NAME]",
        "show a recorded run",
        (
            "A run from its file alone, on the screen as it went: pause, speed, steps, stages. "
            "With any of the flags below but --ascii, or without a terminal: what it printed. RUN: "
            "a run file. NAME: a scenario's newest run here (NAME~1: the one before), else a "
            "recording that ships; without it the list of those."
        ),
        {"nargs": "?", "const": ""},
        screen="gpulab.tui.app:open_replay",
    ),
    ModeFlag(
        Mode.COMPARE,
        "gpulab.headless.compare:compare",
        "BEFORE AFTER [-- WHAT]",
        "two runs or revisions",
        (
            "Compare saved runs before and after a change: what differs between them, then how "
            "fast each variant is. A side is a run file, a scenario's newest run here (NAME, "
            "NAME~1 the one before), a recording, or a folder of run files: several runs a side "
            "say how much runs differ. Measured anew, in pairs of fresh processes, are two files "
            "(before.py after.py, or FILE:function twice), and with -- WHAT, a scenario or "
            "FILE:function: git:REVISION, a folder (. is this checkout), or python:ENV/bin/python "
            "twice. Nothing in a checkout is written. Exit code 3: nothing to compare; that of "
            "AFTER where it is 3, 4 or 7; with a gate 5: it fails, 6: inconclusive."
        ),
        {"nargs": "+"},
    ),
    ModeFlag(
        Mode.WATCH,
        "gpulab.headless.watch:watch",
        "[RUN | FOLDER]",
        "follow a live run",
        (
            "Follow a run of another process, user or host by its file, which is only read. RUN: a "
            "run file, or a scenario that runs here. FOLDER: the runs in it, as --share writes "
            "them; by default those of yours on this machine. With any of the flags below but "
            "--ascii, or without a terminal: waits for its end and prints the result."
        ),
        {"nargs": "?", "const": ""},
        screen="gpulab.tui.glance:watch",
    ),
    ModeFlag(
        Mode.SERVE,
        "gpulab.headless.serve:serve",
        "[FOLDER]",
        "the screen in a browser",
        (
            "Lessons, earlier runs and runs that go on, in FOLDER or in your own, for a browser on "
            "this machine, or through ssh -L. Each address holds a new token; nothing can be run "
            "there unless --run-allowed says so."
        ),
        {"nargs": "?", "const": ""},
    ),
    ModeFlag(
        Mode.SHOW,
        "gpulab.headless.show:show",
        "WHAT[:VARIANT]",
        "the code of a scenario",
        (
            "The code of a scenario's variants, with the lines marked that differ from the "
            "baseline, and of their kernels. WHAT: a scenario or a file."
        ),
        {},
    ),
    ModeFlag(
        Mode.CALIBRATE,
        "gpulab.headless.calibrate:calibrate",
        "",
        "ceilings of the device",
        (
            "Measure the device's ceilings and draw its roofline. They are kept for later runs on"
            " the same device."
        ),
        {"action": "store_true"},
    ),
    ModeFlag(
        Mode.NEW,
        "gpulab.headless.new:new",
        "FILE | --new --exercise NAME",
        "write a scenario to edit",
        (
            "Write a scenario to start from, or an exercise. The file runs as it is. A file that "
            "exists is never overwritten."
        ),
        {"nargs": "?", "const": ""},
    ),
    ModeFlag(
        Mode.FROM_TRACE,
        "gpulab.headless.from_trace:from_trace",
        "TRACE [FILE]",
        "a scenario of a trace",
        (
            "Write a scenario of the heaviest operations of a trace. TRACE: a torch.profiler "
            "trace with shapes. FILE: default TRACE_operations.py."
        ),
        {"nargs": "+"},
    ),
    ModeFlag(
        Mode.FLEET,
        "gpulab.headless.fleet:fleet",
        "FOLDER | ray SCENARIO",
        "run files of many GPUs",
        (
            "Which of many GPUs is slower, and why: each against the median of its model, from "
            "run files. Exit code 0: no outlier; 8: outliers; 6: too few to compare; 3: no run "
            "file could be read. ray SCENARIO first measures it on every GPU of a Ray cluster."
        ),
        {"nargs": "+"},
    ),
    ModeFlag(
        Mode.HISTORY,
        "gpulab.headless.history:history",
        "[NAME]",
        "runs here, trends, changes",
        (
            "All runs of this machine. NAME: those of a scenario or a file, and where its\n"
            "speedups changed, by device, with what of the environment changed there."
        ),
        {"nargs": "?", "const": ""},
    ),
    ModeFlag(
        Mode.DOCTOR,
        "gpulab.headless.doctor:show_doctor",
        "",
        "what is missing here",
        (
            "What this machine has, what is missing, and how to fix it. Exit code 3 where "
            "something is broken or torch is missing."
        ),
        {"action": "store_true"},
    ),
    ModeFlag(
        Mode.GUIDE,
        "gpulab.headless.guide:show_guide",
        "[PAGE] | course LESSON",
        "the manual",
        ("The manual. Without PAGE: the list of pages. course LESSON: the questions of a lesson."),
        {"nargs": "*"},
    ),
)


@dataclass(frozen=True)
class Flag:
    """`options` are those of argparse; its default is always that the flag was not given."""

    name: str
    modes: frozenset[Mode]
    options: Mapping[str, Any]

    @property
    def destination(self) -> str:
        return str(self.options.get("dest", self.name.lstrip("-").replace("-", "_")))


def _flag(name: str, modes: frozenset[Mode], **options: Any) -> Flag:
    return Flag(name, modes, options)


_RUN = frozenset({Mode.RUN})
_SHOW = frozenset({Mode.SHOW})
_NEW = frozenset({Mode.NEW})
_MEASURES = frozenset({Mode.SCREEN, Mode.RUN})
_ON_A_DEVICE = _MEASURES | {Mode.CALIBRATE}
_OF_A_STEP = _MEASURES | {Mode.COMPARE}
_WITH_FILES = frozenset({Mode.RUN, Mode.FOLLOW, Mode.CALIBRATE})
_RUN_OR_FOLLOW = frozenset({Mode.RUN, Mode.FOLLOW})
_OF_A_FILE = frozenset({Mode.REPLAY, Mode.WATCH})
_SERVE = frozenset({Mode.SERVE})
_COMPARE = frozenset({Mode.COMPARE})
_PRINTS_A_RUN = _RUN | _OF_A_FILE
_GATED = _RUN | _COMPARE
_SLOWER = 0.03

GROUPS: Mapping[str, Sequence[Flag]] = {
    "how to run it": (
        _flag(
            "--device",
            _ON_A_DEVICE | {Mode.FLEET, Mode.COMPARE},
            metavar="cuda:N|cpu",
            help=(
                "default: cuda:0 if available, otherwise cpu; --run also takes all: each GPU "
                "alone, then all together"
            ),
        ),
        _flag(
            "--set",
            _OF_A_STEP | {Mode.SHOW, Mode.FLEET},
            dest="chosen",
            action="append",
            type=setting,
            metavar="NAME=VALUE",
            help="a parameter of the scenario",
        ),
        _flag(
            "--with",
            _RUN | {Mode.COMPARE},
            dest="arguments",
            type=file_name,
            metavar="FILE:function",
            help=(
                "a function that makes the arguments of plain functions: a tuple, a dict of "
                "keywords, or one value"
            ),
        ),
        _flag(
            "--try",
            _RUN,
            dest="try_fixes",
            nargs="?",
            const="",
            metavar="NAME,...",
            help=(
                "measure every fix that applies to FILE:function, one by one and together, without "
                "an edit of it; NAME: only these fixes"
            ),
        ),
        _flag(
            "--what-if",
            _RUN,
            nargs="?",
            const="",
            metavar="NAME,...",
            help=(
                "what each part of a step would gain, measured by delaying it; NAME: a variant, "
                "operations such as aten::mm"
            ),
        ),
        _flag(
            "--keep",
            _RUN | {Mode.HISTORY},
            type=path,
            metavar="FILE.py|N",
            help=(
                "with --try: write the scenario with the fixes, which --run FILE.py measures; with "
                "--prune: the newest N runs of each scenario stay (default: 100)"
            ),
        ),
        _flag(
            "--prune",
            frozenset({Mode.HISTORY}),
            action="store_true",
            help=(
                "delete older run files; those of runs that go on, that lie elsewhere or are "
                "linked to stay"
            ),
        ),
        _flag(
            "--dry-run",
            frozenset({Mode.HISTORY}),
            action="store_true",
            help="with --prune: say which files, and delete nothing",
        ),
        _flag(
            "--sweep",
            _RUN,
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
            _RUN,
            type=repetitions,
            metavar="N",
            help="N runs in fresh processes: 99 %% interval over runs (needs N >= 8)",
        ),
        _flag(
            "--every",
            _RUN,
            dest="every_s",
            type=seconds,
            metavar="S",
            help="with --repeat: start a run every S seconds",
        ),
        _flag(
            "--time",
            _OF_A_STEP | {Mode.FLEET},
            dest="time_s",
            type=seconds,
            metavar="S",
            help=(
                "time limit of the measurement in seconds (default: 10; of --compare 30); it stops "
                "earlier when intervals are narrow"
            ),
        ),
        _flag(
            "--width",
            _MEASURES,
            type=width,
            metavar="0.2%",
            help=(
                "stop when the half-width of every interval is below this share of its speedup "
                "(default: 1%%)"
            ),
        ),
        _flag(
            "--threads",
            _ON_A_DEVICE | {Mode.COMPARE},
            type=count,
            metavar="N",
            help="CPU threads of torch (default: 1)",
        ),
        _flag(
            "--ranks",
            frozenset({Mode.CALIBRATE}),
            type=ranks,
            metavar="N",
            help="measure what joins N processes: all-reduce and sends, by size",
        ),
        _flag(
            "--seed",
            _ON_A_DEVICE | {Mode.COMPARE},
            type=seed,
            metavar="N",
            help="seed of data and order of variants (default: random)",
        ),
        _flag(
            "--smoke",
            _OF_A_STEP | {Mode.FLEET},
            action="store_true",
            help="tiny sizes: check that it runs",
        ),
        _flag(
            "--timeout",
            _ON_A_DEVICE | {Mode.FOLLOW},
            dest="timeout_s",
            type=seconds,
            metavar="S",
            help="stop a run after S seconds (default: after 10 minutes without progress)",
        ),
        _flag(
            "--telemetry",
            _ON_A_DEVICE | {Mode.FOLLOW},
            type=telemetry,
            metavar="on|off|GPU",
            help="sample the device of the run (on, default), nothing, or a GPU by index or UUID",
        ),
        _flag(
            "--retune",
            _RUN,
            action="store_true",
            help="tune again instead of reusing choices of gpulab.tune",
        ),
        _flag(
            "--quick",
            _MEASURES | {Mode.FLEET},
            action="store_true",
            help="shorter and less precise; results are marked with *",
        ),
        _flag(
            "--profile",
            _MEASURES | {Mode.FOLLOW},
            choices=PROFILES,
            help=(
                "profile a step after the measurement, in a second process: the baseline and the "
                "fastest variant (on, default; with --repeat only in the first run), or all"
            ),
        ),
    ),
    "how to serve it": (
        _flag(
            "--listen",
            _SERVE,
            type=address,
            metavar="[HOST:]PORT",
            help="where to listen (default: 127.0.0.1:8000, or another port if that is in use)",
        ),
        _flag(
            "--run-allowed",
            _SERVE,
            action="store_true",
            help="scenarios can be run from the browser: whoever has the address runs code as you",
        ),
    ),
    "what to show": (
        _flag("--ptx", _SHOW, action="store_true", help="kernels as PTX"),
        _flag("--sass", _SHOW, action="store_true", help="kernels as disassembled machine code"),
        _flag(
            "--arch",
            _SHOW,
            type=architecture,
            metavar="sm_90",
            help="architecture to compile for (default: sm_90)",
        ),
    ),
    "what to write": (
        _flag(
            "--exercise",
            _NEW,
            nargs="?",
            const="",
            metavar="NAME",
            help=(
                "write a slow function to make fast, which --run then judges; without NAME: the "
                "list of exercises"
            ),
        ),
        _flag(
            "--solution",
            _NEW,
            action="store_true",
            help="with --exercise: the reference solution, after a run of your own attempt",
        ),
    ),
    "what to print and keep": (
        _flag(
            "--print",
            _OF_A_FILE,
            action="store_true",
            help="print the result, also on a terminal",
        ),
        _flag(
            "--top",
            _PRINTS_A_RUN | {Mode.FROM_TRACE},
            type=operations,
            metavar="N",
            help="number of operations (default: 8 in a result, 10 of a trace)",
        ),
        _flag(
            "--sort",
            _PRINTS_A_RUN,
            choices=tuple(SortBy),
            metavar="COLUMN",
            help=f"table of operations by a column: {', '.join(SortBy)}",
        ),
        _flag(
            "--group-by",
            _PRINTS_A_RUN,
            choices=tuple(GroupBy),
            metavar="WHAT",
            help="operations summed by operation (default), line of the program, module, or kernel",
        ),
        _flag(
            "--json",
            _WITH_FILES
            | _OF_A_FILE
            | {Mode.LIST, Mode.DOCTOR, Mode.FLEET, Mode.COMPARE, Mode.HISTORY},
            nargs="?",
            const="-",
            type=file_name,
            metavar="FILE",
            help="result as JSON, to FILE or to stdout",
        ),
        _flag(
            "--output",
            _WITH_FILES | {Mode.FLEET},
            type=output,
            metavar="FILE",
            help=(
                "run file: all events and raw samples (a folder for several runs); %%N is the "
                "host, %%t the task of srun, MPI, torchrun or Kubernetes"
            ),
        ),
        _flag(
            "--share",
            _MEASURES | {Mode.FOLLOW},
            type=path,
            metavar="FOLDER",
            help="run files into FOLDER, where others watch them: gpulab --watch FOLDER",
        ),
        _flag(
            "--fail-below",
            _GATED,
            action="append",
            type=least_speedup,
            metavar="[VARIANT=]1.2x",
            help="exit code 5 if a speedup (of this variant) is below, 6 if inconclusive",
        ),
        _flag(
            "--fail-if-slower",
            _COMPARE,
            nargs="?",
            const=_SLOWER,
            type=share,
            metavar="3%",
            help="exit code 5 if B takes that much longer than A (3%%), 6 if inconclusive",
        ),
        _flag(
            "--gate",
            _GATED,
            type=path,
            metavar="FILE.toml",
            help="thresholds of each scenario (default: gpulab.toml, where there is one)",
        ),
        _flag(
            "--junit",
            _GATED,
            type=path,
            metavar="FILE.xml",
            help="what passed and failed, as JUnit XML",
        ),
        _flag(
            "--benchmark-json",
            _GATED,
            type=path,
            metavar="FILE",
            help="times for github-action-benchmark (customSmallerIsBetter)",
        ),
        _flag(
            "--bmf",
            _GATED,
            type=path,
            metavar="FILE",
            help="times and speedups in the Bencher Metric Format",
        ),
        _flag(
            "--plot",
            _PRINTS_A_RUN | {Mode.CALIBRATE},
            type=path,
            metavar="FILE.png|svg|pdf",
            help="picture for slides: roofline, and times with intervals",
        ),
        _flag(
            "--export",
            _PRINTS_A_RUN | _COMPARE,
            type=path,
            metavar="FILE.html|md|svg|cast",
            help=(
                "the run as a page to share, a report in Markdown, a picture of the screen, or a "
                "cast for asciinema"
            ),
        ),
        _flag(
            "--trace",
            _RUN_OR_FOLLOW,
            type=trace,
            metavar="FILE.json",
            help="trace of the profiled steps, for Perfetto or chrome://tracing",
        ),
        _flag(
            "--memory",
            _RUN,
            action="store_true",
            help="peak memory of a step; on a GPU also a memory snapshot",
        ),
        _flag(
            "--from-start",
            _PRINTS_A_RUN,
            nargs="?",
            const=0,
            type=steps,
            metavar="STEPS",
            help=(
                "goodput of a whole job from process start: imports, build, first step and STEPS "
                "steps (default: those that the baseline takes in a minute)"
            ),
        ),
        _flag(
            "--raw",
            _PRINTS_A_RUN,
            action="store_true",
            help="raw times too: min, median, mean, standard deviation, percentiles",
        ),
        _flag(
            "--markdown",
            _PRINTS_A_RUN | _COMPARE,
            action="store_true",
            help="the result as tables in Markdown instead; of a run its raw times too",
        ),
        _flag(
            "--checklist",
            _RUN_OR_FOLLOW | _OF_A_FILE,
            action="store_true",
            help="answer every question of the performance checklists, with its number",
        ),
        _flag(
            "--verbose",
            _RUN_OR_FOLLOW | _OF_A_FILE | {Mode.FLEET, Mode.COMPARE, Mode.HISTORY},
            action="store_true",
            help="all tables, checks, findings, operations, lines that differ, and the roofline",
        ),
        _flag("--ascii", frozenset(Mode), action="store_true", help="ASCII characters only"),
    ),
}
