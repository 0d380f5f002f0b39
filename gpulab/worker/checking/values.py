"""Values for the inputs of a build: those of another seed, a few elements exchanged, cases of an author."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from gpulab.worker.building import tensors

Tensors = list[torch.Tensor]
Write = Callable[[], None]
Kind = tuple[torch.Size, torch.dtype]

_EXCHANGED = 3
_MOVED = 0.8
_LATE = 0.75
"""The part of a tensor in which one of the elements lies: what samples the beginning does not see it."""


@dataclass(frozen=True)
class AllValues:
    """Values of every input, as a build made them or a case says."""

    name: str
    values: Sequence[torch.Tensor]

    def on(self, inputs: Sequence[torch.Tensor]) -> tuple[Write, Write]:
        """(writes them, puts back what is there now)."""
        saved = tensors.kept(inputs)
        return lambda: tensors.put_back(inputs, self.values), lambda: tensors.put_back(inputs, saved)


@dataclass(frozen=True)
class Exchange:
    """A few elements of floating-point inputs move to the values of others, or are many times the largest."""

    name: str
    places: Sequence[tuple[int, float, float]]
    """(input, the element, the other element), both as shares of its elements."""
    times: float = 0.0
    """Of the largest value; 0 takes that of the other element."""

    def on(self, inputs: Sequence[torch.Tensor]) -> tuple[Write, Write]:
        """(writes them, puts back what is there now), both without a wait: the views are made here."""
        elements = [_element(inputs[index], place) for index, place, _ in self.places]
        saved = tensors.copies(elements)
        values = [self._value(inputs[index], place, other) for index, place, other in self.places]
        if any(element.is_inference() for element in elements):
            return lambda: tensors.put_back(elements, values), lambda: tensors.put_back(elements, saved)
        return lambda: _copy(elements, values), lambda: _copy(elements, saved)

    def _value(self, tensor: torch.Tensor, place: float, other: float) -> torch.Tensor:
        if not self.times:  # not all the way: two that are equal could be told by it
            own, wanted = (tensors.computable(_element(tensor, share)) for share in (place, other))
            return (own + (wanted - own) * _MOVED).to(tensor.dtype)
        largest = tensors.computable(tensors.on_gpu_if_large(tensor)).abs().amax() * self.times
        return largest.to(tensor.dtype)


def _copy(elements: Sequence[torch.Tensor], values: Sequence[torch.Tensor]) -> None:
    """In a few microseconds: a step must not tell it from the gap between two others."""
    for element, value in zip(elements, values, strict=True):
        element.copy_(value)


Change = AllValues | Exchange


def exchange(inputs: Sequence[torch.Tensor], draw: random.Random, times: float = 0.0) -> Exchange | None:
    """A random one; None where no input holds floating-point numbers. Whole numbers may be places in memory."""
    floats = [index for index, tensor in enumerate(inputs) if tensor.numel() > 1 and tensor.is_floating_point()]
    if not floats:
        return None
    largest = max(inputs[index].numel() for index in floats)
    large = [index for index in floats if inputs[index].numel() * 16 >= largest]
    places = [(draw.choice(large), draw.uniform(_LATE, 1.0), draw.random())]
    places += [(draw.choice(floats), draw.random(), draw.random()) for _ in range(_EXCHANGED - 1)]
    return Exchange("a few elements", places, times)


def flipped(tensor: torch.Tensor) -> torch.Tensor | None:
    """Other values for a tensor that has the same with every seed; None of whole numbers, which may be places."""
    if tensor.dtype == torch.bool:
        return ~tensor
    if not tensor.is_floating_point() or not tensor.dim():
        return None
    return tensors.computable(tensor).roll(1).mul(0.9).to(tensor.dtype)


def differ(inputs: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool | None:
    """Whether any element differs; None where the shapes do, so that none of the values can be copied."""
    if [kind(tensor) for tensor in inputs] != [kind(tensor) for tensor in others]:
        return None
    return tensors.changed(inputs, others)


def kind(tensor: torch.Tensor) -> Kind:
    """What two tensors share of which one may take the values of the other."""
    return tensor.shape, tensor.dtype


def _element(tensor: torch.Tensor, share: float) -> torch.Tensor:
    """The element at a place of the logical order, as a view."""
    place = min(int(share * tensor.numel()), tensor.numel() - 1)
    index = []
    for size in reversed(tensor.shape):
        place, position = divmod(place, size)
        index.append(position)
    return tensor[tuple(reversed(index))]


_RARE = 0.01
"""The part of the elements that a case makes infinite or NaN."""


def _rare(values: torch.Tensor) -> torch.Tensor:
    """The smallest elements: the same in every layout."""
    flat = values.reshape(-1)
    count = max(1, int(_RARE * flat.numel()))
    return values <= flat.kthvalue(count).values


CASES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "zeros": torch.zeros_like,
    "negative": lambda values: -values.abs(),
    "signs": torch.neg,
    "scales": lambda values: values * 1000,
    "infinities": lambda values: torch.where(_rare(values), -torch.inf, values),
    "nan": lambda values: torch.where(_rare(values), torch.nan, values),
    "ties": lambda values: (values * 4).round() / 4,
}
"""What a case does with floating-point inputs: functions of the value alone, so alike whatever the layout."""
FREE = ("zeros", "signs", "scales", "infinities")


def case(name: str, inputs: Sequence[torch.Tensor]) -> AllValues:
    """The values of the inputs in a case of that name."""
    change = CASES[name]
    values = [_changed(tensor, change) if tensor.is_floating_point() else tensor.clone() for tensor in inputs]
    return AllValues(name, values)


def _changed(tensor: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    wide = tensors.computable(tensor)
    return change(wide).to(tensor.dtype) if tensor.numel() else tensor.clone()
