"""Spans in a recording that say which line of the program, in which module, calls torch.

The profiler's own stacks have the first line of each function, never the line of the call, and an
event for every call of Python's. A span around each call of torch costs 5 to 10 us, which is why a
recording of its own has them.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

import gpulab
from gpulab.features.goodput.trace import CALLER

_PACKAGES = ("site-packages", "dist-packages")
_TORCH_FOLDER = f"{Path(torch.__file__).parent}/"
_LAB_FOLDER = f"{Path(gpulab.__file__).parent}/"
_PYTHON_FOLDERS = tuple(
    f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib") if sysconfig.get_path(name)
)
_CALL = torch.nn.Module._call_impl.__code__


class MarkedCalls(TorchFunctionMode):
    """Marks every call of torch within; what torch compiled would be compiled anew under it.

    Within a call of torch it is off: the outermost call is the program's.
    """

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[int, dict[int, str]] = {}
        """Of the modules of each root, by their ids."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        line, module = self._caller(sys._getframe(1))
        # the profiler gives a name with a control character another: unknown
        with torch._C._profiler._RecordFunctionFast(f"{CALLER}{line}|{module}"):
            return func(*args, **(kwargs or {}))

    def _caller(self, frame: FrameType | None) -> tuple[str, str]:
        """The innermost line of the program, and the module that it is in; empty where there is
        none.
        """
        line = ""
        modules = []
        while frame is not None:
            code = frame.f_code
            if code is _CALL:
                modules.append(frame.f_locals.get("self"))
            elif not line and is_of_the_program(code.co_filename):
                line = f"{Path(code.co_filename).name}:{frame.f_lineno}"
            frame = frame.f_back
        return line, self._module(modules)

    def _module(self, innermost_first: list[Any]) -> str:
        """Such as Net.layers.0.linear: the class of the outermost, then names."""
        modules = [module for module in innermost_first if isinstance(module, torch.nn.Module)]
        if not modules:
            return ""
        root = modules[-1]
        if id(root) not in self._names:
            self._names[id(root)] = {id(each): name for name, each in root.named_modules()}
        name = self._names[id(root)].get(id(modules[0]))
        if name is None:
            return type(root).__name__
        return ".".join(filter(None, (type(root).__name__, name)))


@cache
def is_of_a_package(file: str) -> bool:
    """Return whether a file is of a package that was installed."""
    return any(f"/{folder}/" in file for folder in _PACKAGES)


def is_of_the_program(file: str) -> bool:
    """Return whether a file is neither torch's, nor Python's, nor the lab's."""
    if file.startswith("<") or file.startswith((_TORCH_FOLDER, _LAB_FOLDER)):
        return False
    return is_of_a_package(file) or not file.startswith(_PYTHON_FOLDERS)
