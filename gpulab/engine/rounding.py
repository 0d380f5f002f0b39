"""The rule by which two outputs agree: how far rounding may put them apart, by norm and by element.

It needs nothing but the standard library, as a side of a comparison does.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

TOLERANCE = {
    "fp64": 1e-10,
    "fp32": 1e-4,
    "tf32": 5e-3,
    "fp16": 5e-3,
    "bf16": 2e-2,
    "fp8": 1e-1,
    "int8": 5e-2,
}
"""Relative Frobenius error allowed by dtype."""
PRECISION = {
    "float64": "fp64",
    "complex128": "fp64",
    "float32": "fp32",
    "complex64": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}
"""Of floating-point numbers, by the names of their dtypes."""
OF_ELEMENT = 10
_RMS_TOLERANCES = 1
_LOW_RMS_TOLERANCES = 10
"""Tolerances that an element may be off by: of its own value, and of the rms of all in fp32 and
fp64, and where less is precise. Two right ways of products, sums, norms, softmax, convolutions,
attention and networks of six layers (64 to 1024, products to 2048) needed, beside 10 of their own
value, 0.05 (fp32), 1.2 (fp16) and 2.7 (bf16) of the rms; in 24 layers of bf16 one element was off
by 7 times the error of all.
"""


class Difference(NamedTuple):
    """The distance of an output from its reference, both in double precision."""

    squares: float
    """Sum of the squared differences; none where both are the same infinity, or NaN."""
    reference: float
    """Sum of the squares of the reference's finite elements."""
    beyond: float
    """The largest difference of an element beyond `OF_ELEMENT` tolerances of its own value."""
    elements: int

    @property
    def error(self) -> float:
        """The relative Frobenius error."""
        if self.reference:
            return sqrt(self.squares / self.reference)
        return inf if self.squares else 0.0

    def beyond_allowed(self, tolerance: float) -> float:
        """Return how far beyond its own value an element may be off."""
        rms = sqrt(self.reference / self.elements) if self.elements else 0.0
        is_precise = tolerance <= TOLERANCE["fp32"]
        return (_RMS_TOLERANCES if is_precise else _LOW_RMS_TOLERANCES) * tolerance * rms

    def agrees(self, tolerance: float) -> bool:
        """Return whether rounding may have made it."""
        return self.error <= tolerance and self.beyond <= self.beyond_allowed(tolerance)
