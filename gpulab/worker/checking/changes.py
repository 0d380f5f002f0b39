"""New values for the inputs of a step, made of their own: valid wherever the first were, and alike in every variant."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from gpulab.worker.building import tensors
from gpulab.worker.checking.matching import Matching, Relation

_ELEMENTWISE = {Relation.SAME, Relation.SCALED}
_HAS_FIRST = {*_ELEMENTWISE, Relation.REPEATED, Relation.PREFIX}
_LATE = 0.75
Undo = Callable[[], None]


@dataclass(frozen=True)
class Everything:
    """Every float scaled and, where `shift` is not 0, moved along; without floats every whole number mirrored or moved.

    Whole numbers stay as they are beside floats: they may be places, or sizes, that must not change.
    """

    name: ClassVar[str] = "everything"
    scale: float
    shift: float = 0.0
    """As a share of all elements."""

    def fits(self, matching: Matching) -> bool:
        """Whether it does the same to a variant's inputs as to the baseline's."""
        if self.shift:
            return matching.all_are(_ELEMENTWISE)
        return not matching.missing or all(
            matched.is_float for matched in matching.inputs if matched.relation == Relation.OTHER
        )

    def made(self, inputs: Sequence[torch.Tensor], matching: Matching) -> Undo:
        """Write to the inputs in place; returns what puts them back."""
        saved = tensors.kept(inputs)
        try:
            self.make(inputs, matching)
        except BaseException:
            tensors.put_back(inputs, saved)
            raise
        return lambda: tensors.put_back(inputs, saved)

    @torch.inference_mode()
    def make(self, inputs: Sequence[torch.Tensor], matching: Matching) -> None:
        """Write to the inputs in place. Those beyond the baseline's stay, where all of those are there."""
        for tensor, match in zip(inputs, matching.inputs, strict=True):
            quantized = match.relation == Relation.SCALED and not match.is_float
            beyond = match.relation == Relation.OTHER and not matching.missing
            if beyond or not tensor.numel() or tensor.dtype == torch.bool:
                continue
            if not (match.is_float or quantized):
                if not _has_floats(inputs):
                    self._change_integers(tensor)
                continue
            values = tensors.computable(tensors.on_gpu_if_large(tensor))
            if self.shift and tensor.dim():
                values = _moved(values, self.shift)
            scaled = values * self.scale
            tensor.copy_(scaled.round() if quantized else scaled)

    def _change_integers(self, tensor: torch.Tensor) -> None:
        if _is_sorted(tensor):
            return
        if self.shift:
            tensor.copy_(_moved(tensor, self.shift))
        else:
            low, high = tensor.amin(), tensor.amax()
            tensor.copy_(high - (tensor - low))


@dataclass(frozen=True)
class LateElement:
    """One element of one input takes the value of another, or one many times the largest; all else stays."""

    name: ClassVar[str] = "late element"
    input: int
    """The baseline's input, by its place."""
    place: float
    source: float
    """Both as shares of its elements."""
    times: float = 0.0
    """Of the largest size of all; 0 takes the value at the source instead."""

    def fits(self, matching: Matching) -> bool:
        """Whether a variant has that element too, and can hold its value."""
        own = [matched for matched in matching.inputs if matched.index == self.input]
        return bool(own) and all(
            matched.relation in _HAS_FIRST and not matched.shorter and (matched.same_dtype or not self.times)
            for matched in own
        )

    def made(self, inputs: Sequence[torch.Tensor], matching: Matching) -> Undo:
        """Write to the inputs in place; returns what puts the element back."""
        elements = [element for _, element in self._elements(inputs, matching)]
        saved = tensors.copies(elements)
        self.make(inputs, matching)
        return lambda: tensors.put_back(elements, saved)

    @torch.inference_mode()
    def make(self, inputs: Sequence[torch.Tensor], matching: Matching) -> None:
        """Write to the inputs in place."""
        for element, value in [
            (element, self._value(tensor, period)) for (tensor, period), element in self._elements(inputs, matching)
        ]:
            element.copy_(value)

    def _value(self, tensor: torch.Tensor, period: int) -> torch.Tensor:
        if self.times:
            return tensors.computable(tensors.on_gpu_if_large(tensor)).abs().amax() * self.times
        return _element(tensor, int(self.source * (period - 1))).clone()

    def _elements(
        self, inputs: Sequence[torch.Tensor], matching: Matching
    ) -> Iterator[tuple[tuple[torch.Tensor, int], torch.Tensor]]:
        """((an input, its elements until it repeats), the element to change as a view)."""
        for tensor, match in zip(inputs, matching.inputs, strict=True):
            if match.index == self.input and match.relation in _HAS_FIRST:
                period = match.numel
                last = tensor.numel() if match.relation == Relation.REPEATED else period
                for place in range(int(self.place * (period - 1)), last, period):
                    yield (tensor, period), _element(tensor, place)


Change = Everything | LateElement


def everything(draw: random.Random) -> list[Change]:
    """Changes of all values, the strongest first: the next one is for steps to which the one before is not valid."""
    scale = round(draw.uniform(0.5, 0.9), 3)
    shift = draw.uniform(0.1, 0.9)
    return [Everything(scale, shift), Everything(scale), Everything(1.0, shift)]


def late_element(inputs: Sequence[torch.Tensor], draw: random.Random) -> list[Change]:
    """Changes of one late element, the mildest first: the next one is for where that one cannot be seen."""
    floats = _has_floats(inputs)
    places = [
        index
        for index, tensor in enumerate(inputs)
        if tensor.numel() > 1 and tensor.dtype != torch.bool and tensor.is_floating_point() == floats
    ]
    if not places:
        return []
    largest = max(inputs[index].numel() for index in places)
    index = draw.choice([index for index in places if inputs[index].numel() * 16 >= largest])
    tensor, place = inputs[index], draw.uniform(_LATE, 1.0)
    last = tensor.numel() - 1
    now = float(_element(tensor, int(place * last)).double())
    sources = [draw.random() for _ in range(16)]
    source = max(sources, key=lambda share: abs(float(_element(tensor, int(share * last)).double()) - now))
    change = LateElement(index, place, source)
    return [change, *(replace(change, times=times) for times in (4.0, 64.0) if tensor.is_floating_point())]


def _element(tensor: torch.Tensor, place: int) -> torch.Tensor:
    """The element at a place of the logical order, as a view."""
    index = []
    for size in reversed(tensor.shape):
        place, position = divmod(place, size)
        index.append(position)
    return tensor[tuple(reversed(index))]


def _moved(tensor: torch.Tensor, shift: float) -> torch.Tensor:
    return tensor.reshape(-1).roll(int(shift * tensor.numel()) or 1).view(tensor.shape)


def _has_floats(inputs: Sequence[torch.Tensor]) -> bool:
    return any(tensor.is_floating_point() or tensor.is_complex() for tensor in inputs)


def _is_sorted(tensor: torch.Tensor) -> bool:
    """Offsets, which would lead out of memory in another order."""
    flat = tensor.reshape(-1)
    return bool((flat[1:] >= flat[:-1]).all())
