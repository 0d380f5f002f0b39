"""The functions of torch: one that a build replaces is another for all variants, the baseline's too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import torch

_HOLDERS: tuple[Any, ...] = (
    *(torch, torch.Tensor, torch.nn.Module, torch.nn.functional, torch.linalg, torch.fft, torch.special),
    *(torch.autograd, torch.autograd.Function, torch.optim.Optimizer, torch.cuda, torch.cuda.Event, torch.cuda.Stream),
)
_FOLDER = str(Path(torch.__file__).parent)


class TorchFunctions:
    """Those of now; equal to those of another moment where none was replaced, but by torch itself as it compiles."""

    def __init__(self) -> None:
        self._values = [dict(vars(holder)) for holder in _HOLDERS]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TorchFunctions) and not any(
            name
            for holder, before, after in zip(_HOLDERS, self._values, other._values, strict=True)
            for name in _replaced(holder, before, after)
        )

    __hash__ = None  # type: ignore[assignment]

    def put_back(self) -> None:
        for holder, before in zip(_HOLDERS, self._values, strict=True):
            for name in list(_replaced(holder, before, dict(vars(holder)))):
                if name in before:
                    setattr(holder, name, before[name])
                else:
                    delattr(holder, name)


def _replaced(holder: Any, before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Names of what is another by now, and of methods that hide those of a class above."""
    for name, value in before.items():
        if value is not now.get(name) and callable(value) and not _is_of_torch(now.get(name)):
            yield name
    for name in now.keys() - before.keys() if isinstance(holder, type) else ():
        inherited = any(name in vars(base) for base in holder.__mro__[1:])
        if inherited and callable(now[name]) and not _is_of_torch(now[name]):
            yield name


def _is_of_torch(value: Any) -> bool:
    """Whether it is a function in a file of torch: its compiler puts some in the places of others."""
    return type(value) is FunctionType and value.__code__.co_filename.startswith(_FOLDER)
