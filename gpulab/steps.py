"""`gpulab.step()`: names the end of a step in a program that `gpulab --run -- ...` follows."""

import sys

from gpulab.proc.nvtx_ranges import StepRange, profiler_listens

AGENT = "_gpulab_agent"
"""The module that follows a process, where one does."""
_range = StepRange() if profiler_listens() else None


def step() -> None:
    """A step of this program has ended. It does nothing where nobody follows, and no profiler
    listens.
    """
    agent = sys.modules.get(AGENT)
    if agent is not None:
        agent.step()
    elif _range is not None:
        _range.next()
