"""Some elements of outputs, for whoever wants to compare them outside of this process."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from math import isfinite

import torch

from gpulab.protocol.events import OutputSample
from gpulab.worker.building import tensors

_ELEMENTS = 16
_NUMBERS = 100_000_000


def output_samples(
    outputs: Mapping[str, Sequence[torch.Tensor]], tolerance: float, draw: random.Random
) -> list[OutputSample]:
    """The same elements of the outputs of several variants, which had the same values in their inputs."""
    elements = min(sum(tensor.numel() for tensor in output) for output in outputs.values())
    if not elements:
        return []
    number = draw.randrange(_NUMBERS)
    places = sorted(draw.sample(range(elements), min(_ELEMENTS, elements)))
    return [
        OutputSample(
            variant=name,
            number=number,
            elements=elements,
            places=places,
            values=_at(output, places),
            tolerance=tolerance,
        )
        for name, output in outputs.items()
    ]


def _at(output: Sequence[torch.Tensor], places: Sequence[int]) -> list[float | None]:
    """Elements by their places in all tensors one after the other; None where one is not finite."""
    values: list[float | None] = []
    for place in places:
        index = 0
        while place >= output[index].numel():
            place -= output[index].numel()
            index += 1
        element = tensors.computable(output[index].reshape(-1)[place])
        value = float(element.abs() if element.is_complex() else element)
        values.append(value if isfinite(value) else None)
    return values
