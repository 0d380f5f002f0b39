"""`gpulab.step()`: names the end of a step in a program that `gpulab --run -- ...` follows."""

import os
import sys

AGENT = "_gpulab_agent"
"""The module that follows a process, where one does."""
_range = None
if any(name.startswith(("NVTX_", "NSYS_", "NV_NSIGHT_")) for name in os.environ):
    # not before: it would import what a program of its own may do without
    from gpulab.proc.nvtx_ranges import StepRange

    _range = StepRange()


def step() -> None:
    """A step of this program has ended. It does nothing where nobody follows, and no profiler
    listens.
    """
    agent = sys.modules.get(AGENT)
    if agent is not None:
        agent.step()
    elif _range is not None:
        _range.next()
