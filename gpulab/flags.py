"""The flags of the command line: what refines each mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpulab.core.statuses import GroupBy, SortBy
from gpulab.flag_values import (
    PROFILES,
    address,
    architecture,
    count,
    file_name,
    least_speedup,
    operations,
    output,
    path,
    ranks,
    repetitions,
    seconds,
    seed,
    setting,
    share,
    steps,
    telemetry,
    trace,
)
from gpulab.modes import Mode


@dataclass(frozen=True)
class Flag:
    """`options` are those of argparse; its default is always that the flag was not given."""

    name: str
    modes: frozenset[Mode]
    options: Mapping[str, Any]
    feature: str = ""
    """Without which there is none such."""
    command: str = ""
    """What carries the mode out with it, as module:name, in place of the mode's own."""

    @property
    def destination(self) -> str:
        return str(self.options.get("dest", self.name.lstrip("-").replace("-", "_")))


def _flag(
    name: str, modes: frozenset[Mode], *, feature: str = "", command: str = "", **options: Any
) -> Flag:
    return Flag(name, modes, options, feature, command)


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
_PRINTS_OPERATIONS = _PRINTS_A_RUN | {Mode.FOLLOW}
_GATED = _RUN | _COMPARE
_SLOWER = 0.03

GROUPS: Mapping[str, Sequence[Flag]] = {
    "how to run it": (
        _flag(
            "--device",
            _ON_A_DEVICE | {Mode.FLEET, Mode.COMPARE},
            metavar="cuda:N|cpu",
            help="default: cuda:0 if available, otherwise cpu",
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
            feature="fixes",
            command="gpulab.features.fixes.command:try_fixes",
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
            feature="what_if",
            command="gpulab.features.what_if.command:what_if",
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
            "--sweep",
            _RUN,
            feature="sweeps",
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
            feature="repeats",
            type=repetitions,
            metavar="N",
            help="N runs in fresh processes: 99 %% interval over runs (needs N >= 8)",
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
            type=share,
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
            feature="tuning",
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
            _PRINTS_OPERATIONS | {Mode.FROM_TRACE},
            type=operations,
            metavar="N",
            help=(
                "rows of a table of operations (default: 3 to 5 in a short result, 8 where --sort "
                "or --group-by is given, 10 of a trace)"
            ),
        ),
        _flag(
            "--sort",
            _PRINTS_OPERATIONS,
            choices=tuple(SortBy),
            metavar="COLUMN",
            help=f"table of operations by a column: {', '.join(SortBy)}",
        ),
        _flag(
            "--group-by",
            _PRINTS_OPERATIONS,
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
            feature="gate",
            action="append",
            type=least_speedup,
            metavar="[VARIANT=]1.2x",
            help="exit code 5 if a speedup (of this variant) is below, 6 if inconclusive",
        ),
        _flag(
            "--fail-if-slower",
            _COMPARE,
            feature="gate",
            nargs="?",
            const=_SLOWER,
            type=share,
            metavar="3%",
            help="exit code 5 if B takes that much longer than A (3%%), 6 if inconclusive",
        ),
        _flag(
            "--gate",
            _GATED,
            feature="gate",
            type=path,
            metavar="FILE.toml",
            help="thresholds of each scenario (default: gpulab.toml, where there is one)",
        ),
        _flag(
            "--junit",
            _GATED,
            feature="gate",
            type=path,
            metavar="FILE.xml",
            help="what passed and failed, as JUnit XML",
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
            metavar="FILE.html|md",
            help="the run as a page to share, or as a report in Markdown",
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
            feature="memory",
            action="store_true",
            help="peak memory of a step; on a GPU also a memory snapshot",
        ),
        _flag(
            "--from-start",
            _PRINTS_A_RUN,
            feature="goodput",
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
            feature="findings",
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
