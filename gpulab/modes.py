"""What the command line does, by the flag that chooses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Any


class Mode(StrEnum):
    """A mode of the command, by the flag that chooses it; the screen has none."""

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
    WHY = "--why"
    FROM_TRACE = "--from-trace"
    FLEET = "--fleet"
    HISTORY = "--history"
    DOCTOR = "--doctor"
    GUIDE = "--guide"
    COMPLETION = "--completion"


@dataclass(frozen=True)
class ModeFlag:
    """A mode: `gpulab run`, or `gpulab --run`.

    `function`, as module:name, carries the mode out: it gets what the mode names, where it names
    something, and the options of the command, and returns the exit code. It is imported only then.
    `words` is how many names it takes, at least and at most; `help` its line of `gpulab --help`,
    `about` the beginning of its own page of help. Of one name at most the function gets a text,
    which is empty without it.
    """

    mode: Mode
    function: str
    words: tuple[int, int]
    usage: str
    help: str
    about: str
    screen: str = ""


class NotInstalledError(ValueError):
    """A feature was asked for that was taken out."""

    def __init__(self, flag: str, module: str) -> None:
        super().__init__(f"{flag} is not installed: there is no {module}")


_FEATURES = "gpulab.features."
_MANY = 1_000_000


def function_of(mode: str, place: str) -> Callable[..., Any]:
    """By module:name. NotInstalledError where a feature that it imports was taken out."""
    module, _, name = place.partition(":")
    try:
        function: Callable[..., Any] = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if not str(error.name).startswith(_FEATURES):
            raise
        raise NotInstalledError(mode, str(error.name)) from None
    return function


def check_installed(flag: str, feature: str) -> None:
    """NotInstalledError where the feature of a flag was taken out."""
    from gpulab.features import present

    if present(feature) is None:
        raise NotInstalledError(flag, f"{_FEATURES}{feature}")


_ALL = (
    ModeFlag(
        Mode.LIST,
        "gpulab.headless.list:show_list",
        (0, _MANY),
        "[PATH ...]",
        "scenarios, their needs",
        "The scenarios, and what is missing to run them. Those of the files and folders in "
        "PATH come first.",
    ),
    ModeFlag(
        Mode.RUN,
        "gpulab.headless.run:run",
        (1, _MANY),
        "WHAT [WHAT ...]",
        "measure, show the result",
        "Measure scenarios or functions, and print the result. WHAT is a scenario's name, "
        "FILE, FILE:function[,function], a folder, or all.",
    ),
    ModeFlag(
        Mode.REPLAY,
        "gpulab.headless.replay:replay",
        (0, 1),
        "[RUN | NAME]",
        "show a recorded run",
        "A run from its file alone, on the screen as it went: pause, speed, steps, stages. "
        "With any of the flags below but --ascii, or without a terminal: what it printed. RUN: "
        "a run file. NAME: a scenario's newest run here (NAME~1: the one before), else a "
        "recording that ships; without it the list of those.",
        screen="gpulab.tui.app:open_replay",
    ),
    ModeFlag(
        Mode.COMPARE,
        "gpulab.headless.compare:compare",
        (0, 2),
        "BEFORE AFTER [-- WHAT], or -- PROGRAM -- PROGRAM",
        "two runs or revisions",
        "Compare saved runs before and after a change: what differs between them, then how "
        "fast each variant is. A side is a run file, a scenario's newest run here (NAME, "
        "NAME~1 the one before), a recording, or a folder of run files: several runs a side "
        "say how much runs differ. Measured anew, in pairs of fresh processes, are two files "
        "(before.py after.py, or FILE:function twice), and with -- WHAT, a scenario or "
        "FILE:function: git:REVISION, a folder (. is this checkout), or python:ENV/bin/python "
        "twice. Nothing in a checkout is written. With -- PROGRAM -- PROGRAM two programs run "
        "in turn, each timed from its start to its end. Exit code 3: nothing to compare; that of "
        "AFTER where it is 3, 4 or 7; with a gate 5: it fails, 6: inconclusive.",
    ),
    ModeFlag(
        Mode.WATCH,
        "gpulab.headless.watch:watch",
        (0, 1),
        "[RUN | FOLDER]",
        "follow a live run",
        "Follow a run of another process, user or host by its file, which is only read. RUN: a "
        "run file, or a scenario that runs here. FOLDER: the runs in it, as --share writes "
        "them; by default those of yours on this machine. With any of the flags below but "
        "--ascii, or without a terminal: waits for its end and prints the result.",
        screen="gpulab.tui.watching:watch",
    ),
    ModeFlag(
        Mode.SERVE,
        "gpulab.headless.serve:serve",
        (0, 1),
        "[FOLDER]",
        "the screen in a browser",
        "Lessons, earlier runs and runs that go on, in FOLDER or in your own, for a browser on "
        "this machine, or through ssh -L. Each address holds a new token; nothing can be run "
        "there.",
    ),
    ModeFlag(
        Mode.SHOW,
        "gpulab.headless.show:show",
        (1, 1),
        "WHAT[:VARIANT]",
        "the code of a scenario",
        "The code of a scenario's variants, with the lines marked that differ from the "
        "baseline, and of their kernels. WHAT: a scenario or a file.",
    ),
    ModeFlag(
        Mode.CALIBRATE,
        "gpulab.headless.calibrate:calibrate",
        (0, 0),
        "",
        "ceilings of the device",
        "Measure the device's ceilings and draw its roofline. They are kept for later runs on"
        " the same device.",
    ),
    ModeFlag(
        Mode.NEW,
        "gpulab.headless.new:new",
        (0, 1),
        "FILE | --new --exercise NAME",
        "write a scenario to edit",
        "Write a scenario to start from, or an exercise. The file runs as it is. A file that "
        "exists is never overwritten.",
    ),
    ModeFlag(
        Mode.WHY,
        "gpulab.headless.why:why",
        (1, 1_000),
        "TRACE|FOLDER ...",
        "where a trace's time went",
        "Say where the time of recordings of torch.profiler went: what the device did, and where "
        "it was idle what the host did meanwhile. It needs no shapes; a file that was cut off is "
        "read as far as it goes. A FOLDER of ranks has a row for each. Of files of Nsight Compute "
        "(.csv, .ncu-rep) the counters of each kernel; two are compared.",
    ),
    ModeFlag(
        Mode.FROM_TRACE,
        "gpulab.headless.from_trace:from_trace",
        (1, 2),
        "TRACE [FILE]",
        "a scenario of a trace",
        "Write a scenario of the heaviest operations of a trace. TRACE: a torch.profiler "
        "trace with shapes. FILE: default TRACE_operations.py.",
    ),
    ModeFlag(
        Mode.FLEET,
        "gpulab.features.fleet.command:fleet",
        (1, 1),
        "FOLDER",
        "run files of many GPUs",
        "Which of many GPUs is slower, and why: each against the median of its model, from "
        "run files. Exit code 0: no outlier; 8: outliers; 6: too few to compare; 3: no run "
        "file could be read.",
    ),
    ModeFlag(
        Mode.HISTORY,
        "gpulab.headless.history:history",
        (0, 1),
        "[NAME]",
        "runs here, trends, changes",
        "All runs of this machine. NAME: those of a scenario or a file, and where its "
        "speedups changed, by device, with environment changes at that point.",
    ),
    ModeFlag(
        Mode.DOCTOR,
        "gpulab.headless.doctor:show_doctor",
        (0, 0),
        "",
        "what is missing here",
        "What this machine has, what is missing, and how to fix it. Exit code 3 where "
        "something is broken or torch is missing.",
    ),
    ModeFlag(
        Mode.GUIDE,
        "gpulab.headless.guide:show_guide",
        (0, 2),
        "[PAGE] | course LESSON",
        "the manual",
        ("The manual. Without PAGE: the list of pages. course LESSON: the questions of a lesson."),
    ),
    ModeFlag(
        Mode.COMPLETION,
        "gpulab.completion:print_completion",
        (1, 1),
        "bash|zsh|fish",
        "for your shell",
        'A script that completes modes, flags and scenarios. bash: eval "$(gpulab --completion '
        'bash)" in ~/.bashrc; zsh likewise; fish: gpulab --completion fish | source',
    ),
    ModeFlag(
        Mode.SCREEN,
        "gpulab.tui.app:open_lab",
        (0, _MANY),
        "[PATH ...]",
        "",
        "Open the screen, with the scenarios of PATH first. The flags apply to every run that "
        "is started there.",
    ),
    ModeFlag(
        Mode.FOLLOW,
        "gpulab.headless.program:follow",
        (1, _MANY),
        "[flags] -- PROGRAM [ARGUMENT ...]",
        "",
        "Start a program as it is, time its steps, and record some of them. stdin, stdout and "
        "the exit code are the program's own; the result goes to stderr. Of a Python that "
        "imports torch the steps are those of the first optimizer, or else outermost calls of "
        "modules; a call of gpulab.step() at the end of each names them itself.",
    ),
)
MODES: Mapping[Mode, ModeFlag] = {each.mode: each for each in _ALL}
