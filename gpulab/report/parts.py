"""What features add to a report."""

from __future__ import annotations

from typing import Any, Self

import msgspec
from msgspec.structs import replace

from gpulab.report.sentences import PARTS


class Parted(msgspec.Struct, frozen=True, kw_only=True):
    """A struct to which features add parts, each a struct of its own. Their fields are attributes
    of the whole, and keys of its JSON.
    """

    parts: tuple[Any, ...] = msgspec.field(default=(), name=PARTS)

    def __getattr__(self, name: str) -> Any:
        """A field of a part. AttributeError where no feature has it."""
        if not name.startswith("_"):
            for part in self.parts:
                if name in part.__struct_fields__:
                    return getattr(part, name)
        raise AttributeError(f"{type(self).__name__} has no {name!r}", name=name)

    def get(self, name: str) -> Any:
        """A field, or one of a part; None where the feature that has it was taken out."""
        return getattr(self, name, None)

    def with_parts(self, **fields: Any) -> Self:
        """The same with these fields of parts."""
        parts = []
        for part in self.parts:
            own = {name: fields.pop(name) for name in part.__struct_fields__ if name in fields}
            parts.append(replace(part, **own) if own else part)
        if fields:
            raise TypeError(f"no part of {type(self).__name__} has {', '.join(fields)}")
        return replace(self, parts=tuple(parts))
