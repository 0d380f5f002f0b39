"""`--new FILE`: a small scenario that runs as it is, to be changed into one's own."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from gpulab.headless.options import Options
from gpulab.headless.terminal import open_terminal
from gpulab.session.settings import UsageError

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
    path = Path(file)
    if path.suffix != ".py":
        raise UsageError(f"--new {file}: a scenario is a Python file, such as {path.stem or 'my_step'}.py")
    try:
        with path.open("x", encoding="utf-8") as out:
            out.write(_TEMPLATE.format(title=_title(path.stem)))
    except FileExistsError:
        raise UsageError(f"--new {file}: the file exists, and stays as it is") from None
    except OSError as error:
        raise UsageError(f"--new {file}: {error.strerror}") from None
    open_terminal(ascii_only=options.ascii).say(f"wrote {file}; run it: gpulab --run {shlex.quote(file)}")
    return 0


def _title(stem: str) -> str:
    """The words of a file's name, and nothing that would end the text that they stand in."""
    return re.sub(r"[\W_]+", " ", stem).strip().capitalize() or "My step"
