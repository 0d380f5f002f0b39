"""`--new FILE`: a small scenario that runs as it is, to be changed into one's own."""

from __future__ import annotations

import shlex
from pathlib import Path

from gpulab.run.request import UsageError

_TEMPLATE = '''"""{title}: say in one line what this compares.

Then say why one variant should be faster, and when it is not.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="my own",
    params={{"mib": 64}},
    smoke={{"mib": 1}},
    claim="what you expect, such as 2x",
)


@scenario.variant
def fresh(lab, mib):
    """The baseline: a new tensor for every result."""
    data = torch.rand(mib * MiB // 4, device=lab.device)
    return Work(lambda: data * 2, bytes=2 * data.nbytes, inputs=data)


@scenario.variant
def preallocated(lab, mib):
    """One change: the result goes into a tensor that was allocated once."""
    data = torch.rand(mib * MiB // 4, device=lab.device)
    out = torch.empty_like(data)
    return Work(lambda: torch.mul(data, 2, out=out), bytes=2 * data.nbytes, inputs=data)
'''


def new(file: str) -> int:
    """Write the file and say what to do next. UsageError where it exists or cannot be written."""
    path = Path(file)
    if path.suffix != ".py":
        raise UsageError(f"--new {file}: a scenario is a Python file, such as {path.stem or 'my_step'}.py")
    try:
        with path.open("x") as out:
            out.write(_TEMPLATE.format(title=path.stem.replace("_", " ").capitalize()))
    except FileExistsError:
        raise UsageError(f"--new {file}: the file exists, and stays as it is") from None
    except OSError as error:
        raise UsageError(f"--new {file}: {error.strerror}") from None
    print(f"wrote {file}; run it: gpulab --run {shlex.quote(file)}")
    return 0
