"""Modes of torch, which every call goes through once they are entered: a default device is one too."""

from __future__ import annotations

import torch


def modes() -> tuple[int, int]:
    """How many modes for functions, and for operations, are entered now."""
    return torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()


def leave_modes(before: tuple[int, int]) -> None:
    """Leave those that were entered since."""
    functions, operations = before
    while torch._C._len_torch_function_stack() > functions:
        torch._C._pop_torch_function_stack()
    while torch._C._len_torch_dispatch_stack() > operations:
        torch._C._pop_torch_dispatch_stack(None)
