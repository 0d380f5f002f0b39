"""Values of many kinds with every text in them made safe to show.

Apart from the texts themselves, since a command that prints its help needs no msgspec.
"""

from __future__ import annotations

from types import NoneType
from typing import Any, TypeVar, cast

import msgspec

from gpulab.core.text import plain

T = TypeVar("T")
_SPACES = {ord("\n"): " ", ord("\t"): " "}


def readable(value: T) -> T:
    """The value with every text in it safe to show, and of one line: the same one where that is so
    already. Fields that a struct names in its `multi_line` keep their lines.
    """
    if isinstance(value, msgspec.Struct) and _is_plain(value):
        return value
    return cast("T", _readable(value))


def _is_plain(value: msgspec.Struct) -> bool:
    """Return whether its JSON has nothing to replace: control characters stand behind a backslash
    there, all but one. A look into each field of each event made a run twice as long to fold.
    """
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        return False
    return data.isascii() and b"\\" not in data and b"\x7f" not in data


_NUMBERS = {int, float, bool, NoneType}


def _readable(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isprintable() else plain(value).translate(_SPACES)
    if kind is dict:
        if _NUMBERS.issuperset(map(type, value.values())) and all(map(str.isprintable, value)):
            return value
        return {_readable(key): _readable(item) for key, item in value.items()}
    if kind is list or kind is tuple:
        if _NUMBERS.issuperset(map(type, value)):
            return value
        return kind(map(_readable, value))
    return _readable_struct(value) if isinstance(value, msgspec.Struct) else value


def _readable_struct(value: msgspec.Struct) -> msgspec.Struct:
    changed = {}
    multi_line = getattr(value, "multi_line", ())
    for name in value.__struct_fields__:
        before = getattr(value, name)
        after = plain(before) if name in multi_line else _readable(before)
        if after is not before:
            changed[name] = after
    return msgspec.structs.replace(value, **changed) if changed else value
