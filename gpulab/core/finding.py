"""A finding: something the reader of a result must know, as data. `views.findings` makes the
sentences.
"""

from __future__ import annotations

import msgspec

from gpulab.core.values import Integer, Name, Text

Value = bool | Integer | float | Text | list[Text] | None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A `code` in snake_case, the `variant` it is about (None: the whole run), and its numbers and
    names.

    Seconds end in `_s`, shares are fractions of 1, sizes are bytes. Text of a scenario, such as the
    message of an exception, is a value like any other: it is made safe where it is shown.
    """

    code: Name
    variant: Name | None = None
    values: dict[str, Value] = {}


def finding(code: str, variant: str | None = None, /, **values: Value) -> Finding:
    """A finding with its values as keywords."""
    return Finding(code=code, variant=variant, values=values)
