"""Whether the lab that ends a job is the one that began it.

A scenario runs in the worker's process, and may replace a clock or a check of the lab. The lab's
functions, and those that it measures and compares with, are remembered before the scenario is
loaded and compared at the end. This is no sandbox: code that puts everything back in time is not
found here.
"""

from __future__ import annotations

import builtins
import gc
import operator
import resource
import sys
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import compress
from struct import Struct
from types import CellType, FunctionType, ModuleType
from typing import Any

import torch


def modes() -> tuple[int, int]:
    """How many torch modes for functions, and for operations, are entered now."""
    return torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()


def leave_modes(before: tuple[int, int]) -> None:
    """Leave those that were entered since."""
    functions, operations = before
    while torch._C._len_torch_function_stack() > functions:
        torch._C._pop_torch_function_stack()
    while torch._C._len_torch_dispatch_stack() > operations:
        torch._C._pop_torch_dispatch_stack(None)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_REPLACED_BY_OTHERS = {"__import__", "input", "open", "print"}
"""Builtins that libraries replace, and that no measurement depends on."""
_REPLACED_BY_COMPILER = {"manual_seed"}
"""Functions of torch that torch.compile replaces by its own."""
_OF_TENSORS = _names("""
    __bool__ __eq__ __float__ __getitem__ __int__ __mul__ __ne__ __setitem__ __sub__
    abs all any clone contiguous copy_ cpu data data_ptr detach element_size eq
    fill_ float is_complex is_floating_point item max ne new_empty numel reshape
    resolve_conj roll square sub sum to untyped_storage view zero_
""")
_TOOLS: tuple[tuple[str, Any, Iterable[str]], ...] = (
    ("builtins", builtins, vars(builtins).keys() - _REPLACED_BY_OTHERS),
    ("time", time, _names("monotonic perf_counter perf_counter_ns thread_time thread_time_ns")),
    ("resource", resource, ("getrusage",)),
    ("torch", torch, _names("Tensor cat cuda empty equal isfinite isnan tensor")),
    (
        "torch.cuda",
        torch.cuda,
        _names("Event Stream _sleep current_stream set_stream synchronize"),
    ),
    ("torch.cuda.Event", torch.cuda.Event, _names("elapsed_time query record synchronize wait")),
    ("torch.Tensor", torch.Tensor, _OF_TENSORS),
)
"""(name, module or class, its names) of what clocks and checks use."""
_CONSTANTS = (bool, int, float, str, tuple, frozenset, dict, list, Struct)
"""Types of a module's constants, whose names are in capitals; a cache has a class of its own."""
_WRAPS = {staticmethod: ("__func__",), classmethod: ("__func__",), property: ("fget", "fset")}

QualifiedName = tuple[str, str]
"""The name of a module or class, and a name in it."""


_frozen: list[weakref.ref[Any]] = []
"""The lab's own objects of when the collector was told to leave alone whatever was there."""
_watched: list[tuple[str, Any, dict[str, list[Any]]]] = []
"""Namespaces that a judged file must leave as they were: (name, module or class, its functions)."""


def watch(name: str, holder: ModuleType | type) -> None:
    """From now on, every function of a module or class has to stay what it is."""
    functions = {
        key: _identity(value)
        for key, value in vars(holder).items()
        if callable(value) and key not in _REPLACED_BY_COMPILER
    }
    _watched.append((name, holder, functions))


class LabFunctions:
    """The functions, classes and constants of the lab, and its tools, as of now."""

    def __init__(self) -> None:
        self._modules = {
            name: module
            for name, module in sys.modules.items()
            if name == "gpulab" or name.startswith("gpulab.")
        }
        self._classes = dict(_classes_of(self._modules))
        self._namespaces: dict[str, Mapping[str, Any]] = {
            name: vars(holder) for name, holder in {**self._modules, **self._classes}.items()
        }
        self._names = {name: set(namespace) for name, namespace in self._namespaces.items()}
        self._parts: list[QualifiedName] = []
        for name, namespace in self._namespaces.items():
            self._parts += [(name, key) for key, value in namespace.items() if _counts(key, value)]
        self._before = dict(self._identities())

    def replaced(self) -> list[str]:
        """The names of everything that has been replaced."""
        now = dict(self._identities())
        replaced = {name for name, before in self._before.items() if not _same(before, now[name])}
        replaced |= {*self._added(), *_replaced_in_watched(), *_hidden_by_instances()}
        return sorted(".".join(name) for name in replaced)

    def _identities(self) -> Iterator[tuple[QualifiedName, list[Any]]]:
        """Each with the objects it consists of. They are kept alive, so that no other object gets
        their address.
        """
        for name, key in self._parts:
            yield (name, key), _identity(self._namespaces[name].get(key))
        for name, holder, keys in _TOOLS:
            for key in keys:
                yield (name, key), _identity(getattr(holder, key, None))
        for name in self._modules:
            yield ("sys.modules", name), [sys.modules.get(name)]

    def _added(self) -> Iterator[QualifiedName]:
        """New names that hide others: a builtin in a module, what a class inherits. A compiler adds
        harmless ones.
        """
        for name, namespace in self._namespaces.items():
            for key in set(namespace) - self._names[name]:
                if name in self._classes:
                    hides = _hides(self._classes[name], key)
                else:
                    hides = hasattr(builtins, key)
                if hides:
                    yield name, key


def freeze() -> None:
    """As `gc.freeze`: the collector leaves alone whatever is there by now.

    It lists none of it either, and to list it again would have a forked process copy the memory
    that it shares: the lab's own objects are remembered.
    """
    for candidate in _objects_of_lab():
        with suppress(TypeError):  # of a class without weak references
            _frozen.append(weakref.ref(candidate))
    gc.freeze()


def _hidden_by_instances() -> Iterator[QualifiedName]:
    """Methods of the lab's classes that an attribute of one of their objects hides."""
    for candidate in (*(known() for known in _frozen), *_objects_of_lab()):
        if candidate is None:
            continue
        kind = type(candidate)
        for key in vars(candidate).keys() - getattr(kind, "__dataclass_fields__", {}).keys():
            if callable(getattr(kind, key, None)):
                yield f"{kind.__module__}.{kind.__name__}", key


def _objects_of_lab() -> list[Any]:
    """Objects of the lab's classes that have attributes of their own, of those not frozen."""
    objects = gc.get_objects()
    kinds = {id(kind): kind for kind in map(type, objects)}  # a class may have no hash
    own = {
        number
        for number, kind in kinds.items()
        if kind.__dictoffset__ and str(kind.__module__).startswith("gpulab.")
    }
    return [*compress(objects, map(own.__contains__, map(id, map(type, objects))))]


def _replaced_in_watched() -> Iterator[QualifiedName]:
    if _watched and any(modes()):
        yield "torch", "modes"
    for name, holder, functions in _watched:
        for key, before in functions.items():
            if not _same(before, _identity(vars(holder).get(key))):
                yield name, key


def _classes_of(modules: Mapping[str, ModuleType]) -> Iterator[tuple[str, type]]:
    """All classes that modules define, by name."""
    for module, holder in modules.items():
        for name, value in vars(holder).items():
            if isinstance(value, type) and value.__module__ == module:
                yield f"{module}.{name}", value


def _hides(owner: type, key: str) -> bool:
    """Whether a name of a class hides an inherited one, or is a method that Python calls itself."""
    value = vars(owner)[key]
    if type(value) in (dict, list):
        return False  # Python's own: `__slotnames__` of copies, `__annotations__`
    if any(hasattr(base, key) for base in owner.__mro__[1:]):
        return True
    return key.startswith("__") and callable(value)


def _counts(name: str, value: object) -> bool:
    """Whether it is a function, a class, a module or a constant."""
    if callable(value) or hasattr(type(value), "__get__") or isinstance(value, ModuleType):
        return True
    return name.isupper() and type(value) in _CONSTANTS


def _identity(value: Any) -> list[Any]:
    """The object and what it consists of; of a function its code and defaults, and those of the
    functions within it.
    """
    parts: list[Any] = []
    waiting = [value]
    while waiting:
        part = waiting.pop()
        parts.append(part)
        for inner in _inner(part):
            if all(inner is not known for known in parts):
                waiting.append(inner)
        parts += _contents(part)
    return parts


def _contents(value: Any) -> list[Any]:
    if type(value) is FunctionType:
        return [value.__code__, *(value.__defaults__ or ()), *_contents(value.__kwdefaults__)]
    if type(value) is dict:
        return [*value.keys(), *value.values()]
    return [*value] if type(value) in (list, tuple, frozenset) else []


def _inner(value: Any) -> list[FunctionType]:
    """Python functions that a function wraps, or a descriptor calls."""
    inner = [getattr(value, name) for name in _WRAPS.get(type(value), ())]
    if type(value) is FunctionType:
        inner = [vars(value).get("__wrapped__"), *map(_in_cell, value.__closure__ or ())]
    return [function for function in inner if type(function) is FunctionType]


def _in_cell(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


def _same(before: list[Any], now: list[Any]) -> bool:
    return len(before) == len(now) and all(map(operator.is_, before, now))
