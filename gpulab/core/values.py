"""Types of the values that cross a process or come out of a file, with their ranges: decoding
refuses all others.

JSON has no NaN and no infinity, so every number is finite.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from gpulab.core.limits import (
    EPOCHS,
    LARGEST_INTEGER,
    MESSAGE_LENGTH,
    NAME_LENGTH,
    SOURCE_BYTES,
    TEXT_LENGTH,
)

_ENORMOUS = 1e30

Moment = Annotated[float, Meta(ge=-_ENORMOUS, le=_ENORMOUS)]
"""Seconds on some clock."""
Seconds = Annotated[float, Meta(ge=0, le=1e12)]
StepTime = Annotated[float, Meta(ge=1e-15, le=1e9)]
"""Seconds of something that was timed, never zero: ratios are made of them."""
Number = Annotated[float, Meta(ge=-_ENORMOUS, le=_ENORMOUS)]
Amount = Annotated[float, Meta(ge=0, le=_ENORMOUS)]
PositiveAmount = Annotated[float, Meta(ge=1 / _ENORMOUS, le=_ENORMOUS)]
Items = Annotated[float, Meta(ge=1e-9, le=1e19)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Integer = Annotated[int, Meta(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
Count = Annotated[int, Meta(ge=0, le=LARGEST_INTEGER)]
PositiveCount = Annotated[int, Meta(ge=1, le=LARGEST_INTEGER)]
Index = Annotated[int, Meta(ge=0, le=EPOCHS)]
"""The number of an epoch, a round or a block."""
SignalNumber = Annotated[int, Meta(ge=0, le=64)]
Name = Annotated[str, Meta(max_length=NAME_LENGTH)]
Line = Annotated[str, Meta(max_length=TEXT_LENGTH)]
Text = Annotated[str, Meta(max_length=MESSAGE_LENGTH)]
Source = Annotated[str, Meta(max_length=SOURCE_BYTES)]
Capability = Annotated[str, Meta(pattern=r"^[0-9]{1,3}\.[0-9]{1,3}$")]
"""The compute capability of a GPU, such as 9.0."""
ParamValue = bool | Integer | float | Line
