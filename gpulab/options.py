"""What refines a command, each option declared once: its default, help, parser, and the modes that
take it. From here come the flags, the keywords of `gpulab.run`, and `gpulab.toml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

import gpulab.flag_values as values
from gpulab.core.statuses import GroupBy, SortBy
from gpulab.modes import Mode


@dataclass(frozen=True)
class Flag:
    """An option on the command line. `options` are those of argparse, whose default is always that
    the flag was not given; `group` is its heading in a page of help.
    """

    name: str
    destination: str
    modes: frozenset[Mode]
    group: str
    options: Mapping[str, Any]
    feature: str = ""
    """Without which there is none such."""
    command: str = ""
    """What carries the mode out with it, as module:name, in place of the mode's own."""


def option(
    default: Any,
    group: str,
    modes: frozenset[Mode],
    help: str,
    *,
    name: str = "",
    parser: Any = None,
    feature: str = "",
    command: str = "",
    **options: Any,
) -> Any:
    """A field with all that its flag needs. `name`: where the field is called otherwise;
    `parser` makes a value of a text, or raises argparse.ArgumentTypeError.
    """
    options |= {"help": help}
    if parser is not None:
        options |= {"type": parser}
    if default is False:
        options |= {"action": "store_true"}
    declared = {"name": name, "modes": modes, "group": group, "options": options}
    metadata = {**declared, "feature": feature, "command": command}
    if default is dict:
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


_HOW = "how to run it"
_SERVING = "how to serve it"
_SHOWN = "what to show"
_WRITTEN = "what to write"
_PRINTED = "what to print and keep"
GROUPS = (_HOW, _SERVING, _SHOWN, _WRITTEN, _PRINTED)
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


@dataclass(frozen=True)
class Settings:
    """What refines a run, whichever face starts it; seconds."""

    device: str | None = option(
        None,
        _HOW,
        _ON_A_DEVICE | {Mode.FLEET, Mode.COMPARE},
        "default: cuda:0 if available, otherwise cpu",
        parser=values.device,
        metavar="cuda:N|cpu",
    )
    chosen: dict[str, str] = option(
        dict,
        _HOW,
        _OF_A_STEP | {Mode.SHOW, Mode.FLEET},
        "a parameter of the scenario",
        name="--set",
        action="append",
        parser=values.setting,
        metavar="NAME=VALUE",
    )
    variant: str | None = option(
        None,
        _HOW,
        _MEASURES,
        "only the variants of this name, or whose names match; the baseline always",
        parser=values.pattern,
        metavar="NAME|REGEX",
    )
    threads: int = option(
        1,
        _HOW,
        _ON_A_DEVICE | {Mode.COMPARE},
        "CPU threads of torch (default: 1)",
        parser=values.count,
        metavar="N",
    )
    ranks: int = option(
        0,
        _HOW,
        frozenset({Mode.CALIBRATE}),
        "measure what joins N processes: all-reduce and sends, by size",
        parser=values.ranks,
        metavar="N",
    )
    time_s: float | None = option(
        None,
        _HOW,
        _OF_A_STEP | {Mode.FLEET},
        (
            "time limit of the measurement in seconds (default: 10; of --compare 30); it stops "
            "earlier when intervals are narrow"
        ),
        name="--time",
        parser=values.seconds,
        metavar="S",
    )
    width: float | None = option(
        None,
        _HOW,
        _MEASURES,
        (
            "stop when the half-width of every interval is below this share of its speedup "
            "(default: 1%%)"
        ),
        parser=values.share,
        metavar="0.2%",
    )
    required_speedup: float | None = None
    """What every comparison must reach."""
    required_speedups: dict[str, float] = field(default_factory=dict)
    """Of some variants, in its place."""
    from_start: int | None = option(
        None,
        _PRINTED,
        _PRINTS_A_RUN,
        (
            "goodput of a whole job from process start: imports, build, first step and STEPS "
            "steps (default: those that the baseline takes in a minute)"
        ),
        feature="goodput",
        nargs="?",
        const=0,
        parser=values.steps,
        metavar="STEPS",
    )
    """The steps of a whole job, from the start of its process; 0: those of a minute."""
    seed: int | None = option(
        None,
        _HOW,
        _ON_A_DEVICE | {Mode.COMPARE},
        "seed of data and order of variants (default: random)",
        parser=values.seed,
        metavar="N",
    )
    smoke: bool = option(False, _HOW, _OF_A_STEP | {Mode.FLEET}, "tiny sizes: check that it runs")
    timeout_s: float | None = option(
        None,
        _HOW,
        _ON_A_DEVICE | {Mode.FOLLOW},
        "stop a run after S seconds (default: after 10 minutes without progress)",
        name="--timeout",
        parser=values.seconds,
        metavar="S",
    )
    telemetry: str | None = option(
        None,
        _HOW,
        _ON_A_DEVICE | {Mode.FOLLOW},
        "sample the device of the run (on, default), nothing, or a GPU by index or UUID",
        parser=values.telemetry,
        metavar="on|off|GPU",
    )
    """on, off, or the index or UUID of a GPU; None: on, but off in a quick run."""
    quick: bool = option(
        False, _HOW, _MEASURES | {Mode.FLEET}, "shorter and less precise; results are marked with *"
    )
    share: Path | None = option(
        None,
        _PRINTED,
        _MEASURES | {Mode.FOLLOW},
        "run files into FOLDER, where others watch them: gpulab --watch FOLDER",
        parser=values.path,
        metavar="FOLDER",
    )
    profile: str | None = option(
        None,
        _HOW,
        _MEASURES | {Mode.FOLLOW},
        (
            "profile a step after the measurement, in a second process: the baseline and the "
            "fastest variant (on, default; with --repeat only in the first run), or all"
        ),
        choices=values.PROFILES,
    )
    """on, off, or all for every variant; None: on, and of several runs of the same in the first."""
    retune: bool = option(
        False, _HOW, _RUN, "tune again instead of reusing choices of gpulab.tune", feature="tuning"
    )
    trace: Path | None = option(
        None,
        _PRINTED,
        _RUN_OR_FOLLOW,
        "trace of the profiled steps, for Perfetto or chrome://tracing",
        parser=values.trace,
        metavar="FILE.json",
    )
    memory: bool = option(
        False,
        _PRINTED,
        _RUN,
        "peak memory of a step; on a GPU also a memory snapshot",
        feature="memory",
    )
    arguments: str | None = option(
        None,
        _HOW,
        _RUN | {Mode.COMPARE},
        (
            "a function that makes the arguments of plain functions: a tuple, a dict of "
            "keywords, or one value"
        ),
        name="--with",
        parser=values.file_name,
        metavar="FILE:function",
    )
    """FILE:function that makes the arguments of plain functions; without FILE, one of their own
    file.
    """


@dataclass(frozen=True)
class Options(Settings):
    """What refines the modes of the command line. `json` is a file, or - for stdout."""

    output: Path | None = option(
        None,
        _PRINTED,
        _WITH_FILES | {Mode.FLEET},
        (
            "run file: all events and raw samples (a folder for several runs); %%N is the "
            "host, %%t the task of srun, MPI, torchrun or Kubernetes"
        ),
        parser=values.output,
        metavar="FILE",
    )
    json: str | None = option(
        None,
        _PRINTED,
        _WITH_FILES | _OF_A_FILE | {Mode.LIST, Mode.DOCTOR, Mode.FLEET, Mode.COMPARE, Mode.HISTORY},
        "result as JSON, to FILE or to stdout",
        nargs="?",
        const="-",
        parser=values.file_name,
        metavar="FILE",
    )
    ascii: bool = option(False, _PRINTED, frozenset(Mode), "ASCII characters only")
    verbose: bool = option(
        False,
        _PRINTED,
        _RUN_OR_FOLLOW | _OF_A_FILE | {Mode.FLEET, Mode.COMPARE, Mode.HISTORY},
        "all tables, checks, findings, operations, lines that differ, and the roofline",
    )
    checklist: bool = option(
        False,
        _PRINTED,
        _RUN_OR_FOLLOW | _OF_A_FILE,
        "answer every question of the performance checklists, with its number",
        feature="findings",
    )
    raw: bool = option(
        False,
        _PRINTED,
        _PRINTS_A_RUN,
        "raw times too: min, median, mean, standard deviation, percentiles",
    )
    markdown: bool = option(
        False,
        _PRINTED,
        _PRINTS_A_RUN | _COMPARE,
        "the result as tables in Markdown instead; of a run its raw times too",
    )
    plot: Path | None = option(
        None,
        _PRINTED,
        _PRINTS_A_RUN | {Mode.CALIBRATE},
        "picture for slides: roofline, and times with intervals",
        parser=values.path,
        metavar="FILE.png|svg|pdf",
    )
    export: Path | None = option(
        None,
        _PRINTED,
        _PRINTS_A_RUN | _COMPARE,
        "the run as a page to share, or as a report in Markdown",
        parser=values.path,
        metavar="FILE.html|md",
    )
    fail_below: Sequence[tuple[str, float]] = option(
        (),
        _PRINTED,
        _GATED,
        "exit code 5 if a speedup (of this variant) is below, 6 if inconclusive",
        feature="gate",
        action="append",
        parser=values.least_speedup,
        metavar="[VARIANT=]1.2x",
    )
    fail_if_slower: float | None = option(
        None,
        _PRINTED,
        _COMPARE,
        "exit code 5 if B takes that much longer than A (3%%), 6 if inconclusive",
        feature="gate",
        nargs="?",
        const=_SLOWER,
        parser=values.share,
        metavar="3%",
    )
    gate: Path | None = option(
        None,
        _PRINTED,
        _GATED,
        "thresholds of each scenario (default: gpulab.toml, where there is one)",
        feature="gate",
        parser=values.path,
        metavar="FILE.toml",
    )
    junit: Path | None = option(
        None,
        _PRINTED,
        _GATED,
        "what passed and failed, as JUnit XML",
        feature="gate",
        parser=values.path,
        metavar="FILE.xml",
    )
    repeat: int | None = option(
        None,
        _HOW,
        _RUN,
        "N runs in fresh processes: 99 %% interval over runs (needs N >= 8)",
        feature="repeats",
        parser=values.repetitions,
        metavar="N",
    )
    try_fixes: str | None = option(
        None,
        _HOW,
        _RUN,
        (
            "measure every fix that applies to FILE:function, one by one and together, without "
            "an edit of it; NAME: only these fixes"
        ),
        name="--try",
        feature="fixes",
        command="gpulab.features.fixes.command:try_fixes",
        nargs="?",
        const="",
        metavar="NAME,...",
    )
    what_if: str | None = option(
        None,
        _HOW,
        _RUN,
        (
            "what each part of a step would gain, measured by delaying it; NAME: a variant, "
            "operations such as aten::mm"
        ),
        feature="what_if",
        command="gpulab.features.what_if.command:what_if",
        nargs="?",
        const="",
        metavar="NAME,...",
    )
    keep: Path | None = option(
        None,
        _HOW,
        _RUN | {Mode.HISTORY},
        (
            "with --try: write the scenario with the fixes, which --run FILE.py measures; with "
            "--prune: the newest N runs of each scenario stay (default: 100)"
        ),
        parser=values.path,
        metavar="FILE.py|N",
    )
    prune: bool = option(
        False,
        _HOW,
        frozenset({Mode.HISTORY}),
        (
            "delete older run files; those of runs that go on, that lie elsewhere or are "
            "linked to stay"
        ),
    )
    sweep: Sequence[str] | None = option(
        None,
        _HOW,
        _RUN,
        (
            "one run for each value of a parameter; NAME alone, or nothing, takes the scenario's "
            "own; several are a grid"
        ),
        feature="sweeps",
        action="append",
        nargs="?",
        const="",
        metavar="NAME=A,B,C",
    )
    what: tuple[str, ...] = ()
    """What two revisions, folders or environments are compared by."""
    ptx: bool = option(False, _SHOWN, _SHOW, "kernels as PTX")
    sass: bool = option(False, _SHOWN, _SHOW, "kernels as disassembled machine code")
    arch: str | None = option(
        None,
        _SHOWN,
        _SHOW,
        "architecture to compile for (default: sm_90)",
        parser=values.architecture,
        metavar="sm_90",
    )
    exercise: str | None = option(
        None,
        _WRITTEN,
        _NEW,
        (
            "write a slow function to make fast, which --run then judges; without NAME: the "
            "list of exercises"
        ),
        nargs="?",
        const="",
        metavar="NAME",
    )
    solution: bool = option(
        False,
        _WRITTEN,
        _NEW,
        "with --exercise: the reference solution, after a run of your own attempt",
    )
    listen: str | None = option(
        None,
        _SERVING,
        _SERVE,
        "where to listen (default: 127.0.0.1:8000, or another port if that is in use)",
        parser=values.address,
        metavar="[HOST:]PORT",
    )
    top: int | None = option(
        None,
        _PRINTED,
        _PRINTS_OPERATIONS | {Mode.FROM_TRACE},
        (
            "rows of a table of operations (default: 3 to 5 in a short result, 8 where --sort "
            "or --group-by is given, 10 of a trace)"
        ),
        parser=values.operations,
        metavar="N",
    )
    sort: SortBy | None = option(
        None,
        _PRINTED,
        _PRINTS_OPERATIONS,
        f"table of operations by a column: {', '.join(SortBy)}",
        choices=tuple(SortBy),
        metavar="COLUMN",
    )
    group_by: GroupBy | None = option(
        None,
        _PRINTED,
        _PRINTS_OPERATIONS,
        "operations summed by operation (default), line of the program, module, or kernel",
        choices=tuple(GroupBy),
        metavar="WHAT",
    )
    print: bool = option(False, _PRINTED, _OF_A_FILE, "print the result, also on a terminal")

    @property
    def asks_for_operations(self) -> bool:
        return any(value is not None for value in (self.top, self.sort, self.group_by))

    @property
    def json_on_stdout(self) -> bool:
        return self.json == "-"

    @property
    def json_file(self) -> Path | None:
        return Path(self.json) if self.json and not self.json_on_stdout else None

    @property
    def given(self) -> set[str]:
        """The names of the fields that are not at their default."""
        return {each.name for each in fields(self) if getattr(self, each.name) != _default(each)}


def _default(each: Any) -> Any:
    return each.default_factory() if each.default is MISSING else each.default


def _flags() -> Iterator[Flag]:
    for each in fields(Options):
        if each.metadata:
            declared = dict(each.metadata)
            name = declared.pop("name") or "--" + each.name.replace("_", "-")
            options = {"dest": each.name, **declared.pop("options")}
            yield Flag(name, each.name, options=options, **declared)


FLAGS = tuple(_flags())
_ALONE = ("sweep", "repeat", "fail_below", "gate", "junit", "plot", "export", "trace", "from_start")
"""What makes no sense where a command makes runs of its own."""
MEASURING = ("time_s", "chosen", "arguments", "device", "seed", "smoke")
"""What refines a measurement: saved runs are not measured again."""
EXCLUSIVE: Mapping[str, Sequence[str]] = {
    "try_fixes": (*_ALONE, "chosen"),
    "what_if": _ALONE,
    "repeat": ("sweep", "smoke"),
    "share": ("output",),
    "ptx": ("sass",),
}
"""Options that do not go together."""


def flag_of(name: str) -> str:
    """The flag of an option, such as --time of time_s."""
    return next(flag.name for flag in FLAGS if flag.destination == name)
