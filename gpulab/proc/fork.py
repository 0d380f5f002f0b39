"""ForkGuard processes that end with their parent.

It needs nothing but the standard library, as a side of a comparison does.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def fork() -> int:
    """As `os.fork`. The child dies with this process."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        die_with_parent(parent)
    return pid


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when `parent`, which forked it, ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def become_subreaper() -> None:
    """Become the parent of every process below this one whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        print(f"gpulab: prctl({option}) failed: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
