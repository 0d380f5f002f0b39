"""`gpulab.step()`: names the end of a step in a program that `gpulab --run -- ...` follows."""

import sys

AGENT = "_gpulab_agent"
"""The module that follows a process, where one does."""


def step() -> None:
    """A step of this program has ended. It does nothing where nobody follows."""
    agent = sys.modules.get(AGENT)
    if agent is not None:
        agent.step()
