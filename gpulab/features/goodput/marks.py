"""Spans in a recording that say which line of the program, in which module, calls torch.

The profiler's own stacks have the first line of each function, never the line of the call, and an
event for every call of Python's. A span around each call of torch costs 5 to 10 us, which is why a
recording of its own has them.

A followed program loads this file too: standard library and torch only, for Python 3.9 and later.
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
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

CALLER = "gpulab:at "
_PACKAGES = ("/site-packages/", "/dist-packages/")
_LAB_FOLDER = f"{Path(__file__).resolve().parents[2]}/"
_TORCH_FOLDER = f"{Path(torch.__file__).parent}/"
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
        self._on = True
        self._names: dict[int, dict[int, str]] = {}
        """Of the modules of each root, by their ids."""

    def end(self) -> None:
        """Leave the mode, unless the program has entered one since that is still on: then it stays,
        and does nothing.
        """
        if not self._on:
            return
        self._on = False
        stack = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
        if stack and stack[-1] is self:
            self.__exit__(None, None, None)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if not self._on:
            return func(*args, **(kwargs or {}))
        line, module = self._caller(sys._getframe(1))
        # the profiler gives a name with a control character another: unknown
        with torch._C._profiler._RecordFunctionFast(f"{CALLER}{line}|{module}"):
            return func(*args, **(kwargs or {}))

    def _caller(self, frame: FrameType | None) -> tuple[str, str]:
        """The innermost line of the program, else that of a package, and the module that it is in;
        empty where there is none.
        """
        line = in_package = ""
        modules = []
        while frame is not None:
            code = frame.f_code
            if code is _CALL:
                modules.append(frame.f_locals.get("self"))
            elif not line and is_of_the_program(code.co_filename):
                place = f"{Path(code.co_filename).name}:{frame.f_lineno}"
                if is_of_a_package(code.co_filename):
                    in_package = in_package or place
                else:
                    line = place
            frame = frame.f_back
        return line or in_package, self._module(modules)

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
    return any(folder in file for folder in _PACKAGES)


@cache
def is_of_the_program(file: str) -> bool:
    """Return whether a file is neither torch's, nor Python's, nor the lab's."""
    if file.startswith("<") or file.startswith((_TORCH_FOLDER, _LAB_FOLDER)):
        return False
    return is_of_a_package(file) or not file.startswith(_PYTHON_FOLDERS)
