"""What a source claims of one variant, and which speedups bear it out."""

from dataclasses import dataclass

from judging import Bounds

BEST = "the best"
"""In place of a variant's name: the one with the largest speedup."""


@dataclass(frozen=True)
class Claim:
    """Of one variant against the baseline. `because` says why a GPU may be short of it, or go over
    it.
    """

    variant: str
    accepted: Bounds
    because: str
