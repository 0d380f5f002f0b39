"""Every option, once: its field, its flag, what it takes, and what it does not go with.

From here come the flags of the command line with their help, the keywords of `gpulab.run`, and the
keys of a file of defaults. A new one is a field here, and the place that reads it.
"""

# ruff: noqa: RUF009 (what is called in a class makes a field)

from __future__ import annotations

import ast
import inspect
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulab import option_values as kinds
from gpulab.core.text import plain
from gpulab.modes import Mode
from gpulab.option_values import WrongValueError, shown, text_of

if TYPE_CHECKING:
    from gpulab.core.findings import Finding


class UsageError(ValueError):
    """The command cannot be carried out as it was given. `reason` says what the machine lacks for
    it.
    """

    def __init__(self, message: str, reason: Finding | None = None) -> None:
        super().__init__(plain(message))  # it quotes what was given, which may hold anything
        self.reason = reason


@dataclass(frozen=True)
class Flag:
    """An option as it is given. It `takes` what its help calls so, and its parser reads; with
    `const` it may, and `several` are collected. `command`, of the `feature`, carries the mode out
    with it; where that was taken out there is none such.
    """

    title: str
    modes: Collection[Mode]
    takes: tuple[str, Callable[[str], Any]] | None = None
    name: str = ""
    const: Any = None
    several: bool = False
    feature: str = ""
    command: str = ""

    def value(self, given: Any, label: str) -> Any:
        """Return the checked value of what was given by a flag, a keyword, or a file of defaults;
        pairs become a dict. UsageError, which begins with the label.
        """
        if not self.several:
            return self.checked(given, label)
        values = [self.checked(each, label) for each in given]
        if not isinstance(values[0], tuple):
            return values
        if len(dict(values)) < len(values):
            raise UsageError(f"{label}gives two values for the same name")
        return dict(values)

    def checked(self, given: object, label: str) -> Any:
        """One of them."""
        try:
            if self.takes is None:
                if not isinstance(given, bool):
                    raise WrongValueError("True or False")
                return given
            if self.const is not None and given == self.const:
                return given
            return self.takes[1](text_of(given))
        except WrongValueError as error:
            raise UsageError(f"{label}{shown(given)}: write {error}") from None


def _flag(title: str, modes: Collection[Mode], takes: Any = None, **more: Any) -> Any:
    default = more.pop("default", None if takes else False)
    several = default in (dict, ())
    metadata = {"flag": Flag(title, modes, takes, several=several, **more)}
    if default is dict:
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


_to_run = partial(_flag, "how to run it")
_to_serve = partial(_flag, "how to serve it")
_to_show = partial(_flag, "what to show")
_to_write = partial(_flag, "what to write")
_to_print = partial(_flag, "what to print and keep")

_RUN = {Mode.RUN}
_MEASURES = {Mode.SCREEN, Mode.RUN}
_USES_DEVICE = {*_MEASURES, Mode.CALIBRATE}
_TIMED = {*_MEASURES, Mode.COMPARE}
_RUN_OR_FOLLOW = {Mode.RUN, Mode.FOLLOW}
_WRITES_RUN = {*_RUN_OR_FOLLOW, Mode.CALIBRATE}
_READS_RUN = {Mode.REPLAY, Mode.WATCH}
_PRINTS_A_RUN = {Mode.RUN, *_READS_RUN}
_PRINTS_OPERATIONS = {*_PRINTS_A_RUN, Mode.FOLLOW}
_GATED = {Mode.RUN, Mode.COMPARE}


@dataclass(frozen=True)
class Options:
    """The options of a command, whichever face takes it. None is what was not given. The text below
    a field is its help.
    """

    device: str | None = _to_run({*_TIMED, Mode.CALIBRATE}, ("cuda:N|cpu", kinds.device))
    """default: cuda:0 if available, otherwise cpu"""
    chosen: dict[str, str] = _to_run(
        {*_TIMED, Mode.SHOW},
        ("NAME=VALUE", kinds.setting),
        name="--set",
        default=dict,
    )
    """a parameter of the scenario"""
    arguments: str | None = _to_run(_GATED, ("FILE:function", kinds.file_name), name="--with")
    """a function that makes the arguments of plain functions: a tuple, a dict of keywords, or one
    value
    """
    variant: Sequence[str] = _to_run(_MEASURES, ("NAME", kinds.expression), default=())
    """only the baseline and the variants of this name, which may be a regular expression"""
    try_fixes: str | None = _to_run(
        _RUN_OR_FOLLOW,
        ("NAME,...", str),
        name="--try",
        const="",
        feature="trials",
        command="try_fixes",
    )
    """measure every fix that applies to FILE:function, one by one and together, or to the steps of
    a program that runs, without an edit of it; NAME: only these fixes
    """
    what_if: str | None = _to_run(
        _RUN_OR_FOLLOW, ("NAME,...", str), const="", feature="trials", command="what_if"
    )
    """what each part of a step would gain, measured by delaying it; NAME: a variant, operations
    such as aten::mm, or functions of a program's main file
    """
    keep: Path | None = _to_run({Mode.RUN, Mode.HISTORY}, ("FILE.py|N", kinds.path))
    """with --try: write the scenario with the fixes, which --run FILE.py measures; with --prune:
    the newest N runs of each scenario stay (default: 100)
    """
    prune: bool = _to_run({Mode.HISTORY})
    """delete older run files; active runs, linked files and files elsewhere are kept"""
    sweep: Sequence[str] = _to_run(
        _RUN, ("NAME=A,B,C", str), const="", default=(), feature="sweeps"
    )
    """one run for each value of a parameter; NAME alone, or nothing, takes the scenario's own"""
    repeat: int | None = _to_run(_RUN, ("N", kinds.repetitions), feature="repeats")
    """N runs in fresh processes: 99 % interval over runs (needs N >= 8)"""
    time_s: float | None = _to_run(_TIMED, ("S", kinds.seconds), name="--time")
    """time limit of the measurement in seconds (default: 10; of --compare 30); it stops earlier
    when intervals are narrow
    """
    width: float | None = _to_run(_MEASURES, ("0.2%", kinds.share))
    """stop when the half-width of every interval is below this share of its speedup (default: 1%)
    """
    threads: int = _to_run({*_USES_DEVICE, Mode.COMPARE}, ("N", kinds.threads), default=1)
    """CPU threads of torch (default: 1)"""
    ranks: int = _to_run({Mode.CALIBRATE}, ("N", kinds.ranks), default=0)
    """measure what joins N processes: all-reduce and sends, by size"""
    seed: int | None = _to_run({*_USES_DEVICE, Mode.COMPARE}, ("N", kinds.seed))
    """seed of data and order of variants (default: random)"""
    smoke: bool = _to_run(_TIMED)
    """tiny sizes: check that it runs"""
    timeout_s: float | None = _to_run(
        {*_USES_DEVICE, Mode.FOLLOW, Mode.COMPARE}, ("S", kinds.seconds), name="--timeout"
    )
    """stop a run after S seconds, of --compare a side without an answer (default: after 10 minutes
    without progress)
    """
    refresh_s: float | None = _to_run(
        {Mode.FOLLOW}, ("S", kinds.seconds), feature="bill", name="--refresh"
    )
    """print where its time went so far after 10 seconds, and then every S seconds"""
    telemetry: str | None = _to_run({*_USES_DEVICE, Mode.FOLLOW}, ("on|off|GPU", kinds.telemetry))
    """sample the device of the run (on, default), nothing, or a GPU by index or UUID"""
    retune: bool = _to_run(_RUN, feature="tuning")
    """tune again instead of reusing choices of gpulab.tune"""
    quick: bool = _to_run(_MEASURES)
    """shorter and less precise; results are marked with *"""
    profile: str | None = _to_run(
        {*_MEASURES, Mode.FOLLOW}, ("{on,off,all}", kinds.one_of(("on", "off", "all")))
    )
    """profile a step after the measurement, in a second process: the baseline and the fastest
    variant (on, default; with --repeat only in the first run), or all; of a program record steps
    as soon as it takes at most 3 % of them (default), at once (on), or never (off)
    """
    counters: float | None = _to_run(
        _MEASURES,
        ("20us", kinds.sampling_interval),
        const=20e-6,
        feature="counters_in_time",
    )
    """sample counters of the GPU over the steps of each variant, after the measurement: every 10 to
    100 us (default: 20us)
    """
    listen: str | None = _to_serve({Mode.SERVE}, ("[HOST:]PORT", kinds.address))
    """where to listen (default: 127.0.0.1:8000, or another port if that is in use)"""
    ptx: bool = _to_show({Mode.SHOW})
    """kernels as PTX"""
    sass: bool = _to_show({Mode.SHOW})
    """kernels as disassembled machine code"""
    arch: str | None = _to_show({Mode.SHOW}, ("sm_90", kinds.architecture))
    """architecture to compile for (default: sm_90)"""
    exercise: str | None = _to_write({Mode.NEW}, ("NAME", str), const="")
    """write a slow function to make fast, which --run then judges; without NAME: the list of
    exercises
    """
    solution: bool = _to_write({Mode.NEW})
    """with --exercise: the reference solution, after a run of your own attempt"""
    print: bool = _to_print(_READS_RUN)
    """print the result, also on a terminal"""
    top: int | None = _to_print({*_PRINTS_OPERATIONS, Mode.FROM_TRACE}, ("N", kinds.operations))
    """table of that many operations, which take longest (default: 8, 10 of a trace)"""
    json: str | None = _to_print(
        {*_WRITES_RUN, *_READS_RUN, Mode.LIST, Mode.DOCTOR, Mode.FLEET, Mode.COMPARE, Mode.HISTORY}
        | {Mode.WHY},
        ("FILE", kinds.file_name),
        const="-",
    )
    """result as JSON, to FILE or to stdout (of a program, whose own stdout is, to FILE)"""
    output: Path | None = _to_print(_WRITES_RUN, ("FILE", kinds.output))
    """run file: all events and raw samples (a folder for several runs); %N is the host, %t the task
    of srun, MPI, torchrun or Kubernetes
    """
    share: Path | None = _to_print({*_MEASURES, Mode.FOLLOW}, ("FOLDER", kinds.path))
    """run files into FOLDER, where others watch them: gpulab --watch FOLDER"""
    class_name: str | None = _to_print({Mode.SCREEN}, ("NAME", str), name="--class")
    """with --share: those who watch follow this screen, its lesson and its tab; NAME is shown to
    those who wait
    """
    fail_below: dict[str, float] = _to_print(
        _GATED, ("[VARIANT=]1.2x", kinds.least_speedup), default=dict, feature="gate"
    )
    """exit code 5 if a speedup (of this variant) is below, 6 if inconclusive"""
    fail_if_slower: float | None = _to_print(
        {Mode.COMPARE}, ("3%", kinds.share), const=0.03, feature="gate"
    )
    """exit code 5 if B takes that much longer than A (3%), 6 if inconclusive"""
    gate: Path | None = _to_print(_GATED, ("FILE.toml", kinds.path), feature="gate")
    """thresholds of each scenario (default: gpulab.toml, if it exists)"""
    junit: Path | None = _to_print(_GATED, ("FILE.xml", kinds.path), feature="gate")
    """what passed and failed, as JUnit XML"""
    plot: Path | None = _to_print(
        {*_PRINTS_A_RUN, Mode.CALIBRATE}, ("FILE.png|svg|pdf", kinds.path)
    )
    """picture for slides: roofline, and times with intervals"""
    export: Path | None = _to_print({*_PRINTS_A_RUN, Mode.COMPARE}, ("FILE.html|md", kinds.path))
    """the run as a page to share, or as a report in Markdown"""
    trace: Path | None = _to_print(_RUN_OR_FOLLOW, ("FILE.json", kinds.trace))
    """trace of the profiled steps, for Perfetto or chrome://tracing"""
    memory: bool = _to_print(_RUN, feature="memory")
    """peak memory of a step; on a GPU also a memory snapshot"""
    ncu: str | None = _to_print(_MEASURES, ("VARIANT", str), const="", feature="counters")
    """hardware counters of each kernel of a step, by Nsight Compute (ncu) after the measurement: of
    all variants, or of the baseline and VARIANT
    """
    from_start: int | None = _to_print(
        _PRINTS_A_RUN, ("STEPS", kinds.steps), const=0, feature="goodput"
    )
    """goodput of a whole job from process start: imports, build, first step and STEPS steps
    (default: those that the baseline takes in a minute)
    """
    raw: bool = _to_print(_PRINTS_A_RUN)
    """raw times too: min, median, mean, standard deviation, percentiles"""
    markdown: bool = _to_print({*_PRINTS_A_RUN, Mode.COMPARE})
    """the result as tables in Markdown instead; of a run its raw times too"""
    checklist: bool = _to_print(_PRINTS_OPERATIONS, feature="bill")
    """the questions of performance checklists, each with its share of the time"""
    verbose: bool = _to_print({*_PRINTS_OPERATIONS, Mode.FLEET, Mode.COMPARE, Mode.HISTORY})
    """all tables, checks, findings, operations, lines that differ, and the roofline"""
    ascii: bool = _to_print(frozenset(Mode))
    """ASCII characters only"""

    required_speedup: float | None = _flag("", (), ("", kinds.speedup))
    """What every comparison must reach; no flag, but a keyword."""
    required_speedups: dict[str, float] = field(default_factory=dict)
    """Of some variants, in its place."""
    what: tuple[str, ...] = ()
    """What two revisions, folders or environments are compared by."""

    def given(self, *names: str) -> list[str]:
        """The flags of those that were given."""
        usual = Options()
        given = [name for name in names if getattr(self, name) != getattr(usual, name)]
        return [flag_of(name).name for name in given]

    def words(self) -> list[str]:
        """The flags that give the same again."""
        words: list[str] = []
        for name, flag in flags().items():
            value = getattr(self, name)
            texts = value if flag.several else [str(value)]
            if isinstance(value, dict):
                texts = [f"{key}={each}".lstrip("=") for key, each in value.items()]
            if self.given(name):
                words += chain.from_iterable((flag.name, text) for text in texts)
            if value is True:
                words.pop()
        return words

    @property
    def json_on_stdout(self) -> bool:
        return self.json == "-"

    @property
    def json_file(self) -> Path | None:
        return Path(self.json) if self.json and not self.json_on_stdout else None

    def file(self, name: str) -> Path | None:
        """Return what an option writes."""
        file = self.json_file if name == "json" else getattr(self, name)
        return file if isinstance(file, Path) else None

    def check(self, mode: Mode) -> None:
        """UsageError for what does not go together, and two flags that name one file."""
        for one, others in _APART:
            if self.given(one) and (also := self.given(*others)):
                raise UsageError(f"{flag_of(one).name} and {also[0]}: one or the other")
        for one, needed, of in _TOGETHER:
            if mode == of and self.given(one) and not self.given(needed):
                raise UsageError(f"{flag_of(one).name} requires {flag_of(needed).name}")
        if mode != Mode.HISTORY and len(self.given(*_WRITTEN)) > 1:
            self._check_files()

    def _check_files(self) -> None:
        from gpulab.core.files import is_appended_to

        flags: dict[str, str] = {}
        for name in _WRITTEN:
            file = self.file(name)
            try:
                if file is None or is_appended_to(file):
                    continue
            except OSError:  # who writes it says why not
                continue
            flag = flag_of(name).name
            first = flags.setdefault(os.path.realpath(file), flag)
            if first != flag:
                raise UsageError(f"{first} and {flag} name one file: {file}")


_WRITTEN = ("output", "json", "junit", "plot", "export", "trace", "keep")
_GATE = ("fail_below", "gate", "junit")
_ONE_RUN = ("variant", "sweep", "repeat", *_GATE, "plot", "export", "trace", "ncu", "from_start")
_APART = (
    ("try_fixes", (*_ONE_RUN, "chosen", "what_if")),
    ("what_if", _ONE_RUN),
    ("repeat", ("sweep", "smoke", "ncu")),
    ("share", ("output",)),
    ("ptx", ("sass",)),
    ("prune", ("json",)),
)
"""What does not go with what."""
_TOGETHER = (
    ("keep", "try_fixes", Mode.RUN),
    ("keep", "prune", Mode.HISTORY),
    ("solution", "exercise", Mode.NEW),
    ("class_name", "share", Mode.SCREEN),
)
"""What needs what, in which mode."""


@cache
def flags() -> Mapping[str, Flag]:
    """Each by the name of its field."""
    found = {}
    for each in fields(Options):
        if flag := each.metadata.get("flag"):
            name = flag.name or f"--{each.name.replace('_', '-')}"
            found[each.name] = replace(flag, name=name)
    return found


def flag_of(name: str) -> Flag:
    return flags()[name]


@cache
def helps() -> Mapping[str, str]:
    """The help of each, by the name of its field."""
    (options,) = ast.parse(inspect.getsource(Options)).body
    assert isinstance(options, ast.ClassDef)
    texts = {}
    for each, below in pairwise(options.body):
        if isinstance(each, ast.AnnAssign) and isinstance(below, ast.Expr):
            texts[ast.unparse(each.target)] = " ".join(ast.literal_eval(below.value).split())
    return texts


def options_of(given: Mapping[str, Any], defaults: Mapping[str, Any], mode: Mode) -> Options:
    """Return a command's options from what its flags gave, by names of fields. UsageError."""
    values = {name: flag_of(name).value(given[name], f"{flag_of(name).name} ") for name in given}
    options = Options(**{**defaults, **values})
    options.check(mode)
    return options


_HOW = ("threads", "time_s", "width", "seed", "smoke", "quick", "timeout_s", "required_speedup")
KEYWORDS = ("arguments", "device", *_HOW, "telemetry", "profile", "trace", "memory")
"""Those of `gpulab.run`."""
