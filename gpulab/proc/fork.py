"""Forks that end with their parent, and what a process tells the kernel about others.

It needs nothing but the standard library, as a side of a comparison does.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Any


def fork() -> int:
    """As `os.fork`. The child dies with this process."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        die_with_parent(parent)
    return pid


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when `parent`, which forked it, ends."""
    _prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


def become_subreaper(*, becomes: bool = True) -> None:
    """Become the parent of every process below this one whose own parent ends; or no longer."""
    _prctl(36, becomes)  # PR_SET_CHILD_SUBREAPER


def is_subreaper() -> bool:
    found = ctypes.c_int()
    _prctl(37, ctypes.byref(found))  # PR_GET_CHILD_SUBREAPER
    return bool(found.value)


def _prctl(option: int, value: Any) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        print(f"gpulab: prctl({option}) failed: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
