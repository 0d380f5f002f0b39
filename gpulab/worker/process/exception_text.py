"""What exceptions and other values of a scenario say of themselves: cut, safe to show, and never an exception.

Their classes are the scenario's too: `str()` of one may raise, its attributes may be properties, its metaclass may
lie. So types are asked by `type()`, attributes are set by the descriptors of BaseException, and text is cut before
anything else is done with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpulab.limits import MESSAGE_LENGTH, NAME_LENGTH
from gpulab.protocol.text import cut, one_line, plain

_MOST = MESSAGE_LENGTH // 2
"""Characters of a message: what is written around it must find room in the same event."""
_KEEP_ALIVE = ("__traceback__", "__context__", "__cause__")
_exact: Callable[[str], str] = str.__str__
"""Of a subclass, a plain string."""


def text_of(value: object, render: Callable[[Any], str] = str, most: int = _MOST) -> str:
    """What `str`, or another function, says of a value, in at most so many characters."""
    try:
        return plain(cut(_exact(render(value)), most))
    except BaseException as error:
        return f"({render.__name__}() of this {type_name(value)} raises {type_name(error)})"


def short(value: object) -> str:
    """The value as it stands in the message of an error, on a line of its own."""
    return one_line(text_of(value, repr, NAME_LENGTH))


def first_line(error: BaseException) -> str:
    """Of an error's message; its type where it has none."""
    return text_of(error).partition("\n")[0] or type_name(error)


def type_name(value: object) -> str:
    """The name of a value's type, whatever its metaclass says."""
    return plain(cut(type.__dict__["__name__"].__get__(type(value)), NAME_LENGTH))


def is_a(error: BaseException, *types: type[BaseException]) -> bool:
    """`isinstance`, by the type that the error has and not by the one that it shows."""
    return issubclass(type(error), types)


def attribute(error: BaseException, name: str, kind: type) -> Any:
    """An attribute of an error; None where it has no such one of exactly that type."""
    try:
        value = getattr(error, name)
    except BaseException:
        return None
    return value if type(value) is kind else None


def forget(error: BaseException) -> None:
    """Let go of what an error holds: the frames of its traceback keep every tensor alive."""
    for name in _KEEP_ALIVE:
        BaseException.__dict__[name].__set__(error, None)
