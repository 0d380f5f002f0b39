"""`--new`: a small scenario that runs as it is, to be changed into one's own; or an exercise."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from gpulab.catalog.exercises import NoExerciseError, exercises, handed_out, solution
from gpulab.headless.output import open_terminal
from gpulab.options import Options, UsageError
from gpulab.session.run import has_attempt

_TEMPLATE = '''"""{title}: say in one line what this compares.

Then say why one variant should be faster, and when it is not. This one computes 2 x + 1: the
baseline goes over the memory twice, the other variant once.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="my own",
    params={{"mib": 16}},
    smoke={{"mib": 1}},
    claim="up to 2x: half the memory traffic",
)


@scenario.variant
def two_passes(lab, mib):
    """Multiply, then add: the result is written, read and written again."""
    data, out = _tensors(lab, mib)
    return Work(lambda: torch.mul(data, 2, out=out).add_(1), bytes=4 * data.nbytes, inputs=data)


@scenario.variant
def one_pass(lab, mib):
    """One operation does both."""
    data, out = _tensors(lab, mib)
    ones = torch.ones((), device=lab.device)
    return Work(lambda: torch.add(ones, data, alpha=2, out=out), bytes=2 * data.nbytes, inputs=data)


def _tensors(lab, mib):
    data = torch.rand(mib * MiB // 4, device=lab.device)
    return data, torch.empty_like(data)
'''


def new(file: str, options: Options) -> int:
    """Write the file and say what to do next. UsageError where it exists or cannot be written."""
    if options.exercise is not None:
        return _exercise(file, options.exercise, options)
    if not file:
        raise UsageError("--new requires FILE, such as --new my_step.py; or --exercise NAME")
    path = Path(file)
    # without characters that would end a docstring
    words = re.sub(r"[\W_]+", " ", path.stem).strip().capitalize()
    write_scenario("--new", path, _TEMPLATE.format(title=words or "My step"))
    open_terminal(ascii_only=options.ascii).say(
        f"wrote {file}; run it: gpulab --run {shlex.quote(file)}"
    )
    return 0


def _exercise(file: str, name: str, options: Options) -> int:
    """Write an exercise or its solution; without a name say which there are."""
    terminal = open_terminal(ascii_only=options.ascii)
    if not name:
        titles = exercises()
        width = max(map(len, titles))
        terminal.say(*(f"{exercise:<{width}}  {title}" for exercise, title in titles.items()))
        terminal.say("", "gpulab --new --exercise NAME")
        return 0
    try:
        text = solution(name) if options.solution else handed_out(name)
    except NoExerciseError as error:
        raise UsageError(f"--exercise {name}: {error}") from None
    if options.solution and not has_attempt(name):
        raise UsageError(
            f"--solution: run an attempt of your own first: gpulab --new --exercise {name}"
        )
    path = Path(file or f"{name}{'_solution' * options.solution}.py")
    write_scenario("--new", path, text)
    shown = shlex.quote(str(path))
    next_step = (
        "compare it with yours"
        if options.solution
        else "make its function fast, then have it judged"
    )
    terminal.say(f"wrote {path}; {next_step}: gpulab --run {shown}")
    return 0


def write_scenario(flag: str, path: Path, text: str) -> None:
    """Write a file that does not exist yet. UsageError, with the flag that asked for it."""
    if path.suffix != ".py":
        raise UsageError(
            f"{flag} {path}: a scenario is a Python file, such as {path.stem or 'my_step'}.py"
        )
    try:
        with path.open("x", encoding="utf-8") as out:
            try:
                out.write(text)
                out.flush()
            except BaseException:
                path.unlink()  # the next try would find that the file exists
                raise
    except FileExistsError:
        raise UsageError(f"{flag} {path}: the file exists, and stays as it is") from None
    except OSError as error:
        raise UsageError(f"{flag} {path}: {error.strerror}") from None
