"""What the judges of exercises share. The worker has it before it runs the file that is judged, so
that nothing of it can be replaced unseen.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpulab.scenario import ScenarioError

ANSWER = "_answer"
"""The module of the file that is judged."""


def judged_step() -> Callable[..., Any]:
    """The function `step` of the file that is judged. ScenarioError."""
    function = getattr(sys.modules.get(ANSWER), "step", None)
    if not callable(function):
        raise ScenarioError("the file has no function 'step': that is the one that is judged")
    return function  # type: ignore[no-any-return]


def sizes(lab: Any) -> Callable[[int, int], int]:
    """Draws sizes from low to below high: anew in every process, and alike in all its builds.

    In those with other data too: of other shapes a result that the build computed could not be told
    by exchanging them.
    """
    return random.Random(lab.data_seed).randrange


def called(
    function: Callable[..., Any], arguments: Sequence[Any], shape: Sequence[int]
) -> torch.Tensor:
    """One result. It has to be a tensor of this shape: the lab compares its numbers alone."""
    result = function(*arguments)
    if isinstance(result, torch.Tensor) and result.shape == shape:
        return result
    returned = type(result).__name__
    if isinstance(result, torch.Tensor):
        returned = f"shape {tuple(result.shape)}"
    raise TypeError(f"step() returned {returned}, and here the result has shape {tuple(shape)}")
