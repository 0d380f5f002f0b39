"""Which input of a variant holds the values of which of the baseline's, from what is remembered of those."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

import torch

from gpulab.protocol.finding import finding
from gpulab.protocol.statuses import CheckKind
from gpulab.worker.building import tensors
from gpulab.worker.process.errors import RefusedError

_SAMPLES = 4096
_QUANTIZED = 5e-2
"""Relative error of 8-bit numbers with one scale."""
_FIGURES = 1e-3
"""By what part of the largest number figures of the same values may differ."""
_SHRUNK = 16
"""Inputs that hold as little as this part of the baseline's bytes do not hold its values."""


class Relation(StrEnum):
    """How the values of an input lie to those of one of the baseline's, element by element in their logical order."""

    SAME = "same"
    SCALED = "scaled"
    """By one number, as quantized values are."""
    REPEATED = "repeated"
    PREFIX = "prefix"
    """One begins with all of the other."""
    REORDERED = "reordered"
    """As many elements of the same range, mean and size, in another order."""
    OTHER = "other"


@dataclass(frozen=True)
class Matched:
    """An input of a variant; `numel` is of the baseline's input that it holds, which is number `index` there."""

    relation: Relation
    numel: int = 0
    index: int = -1
    is_float: bool = True
    same_dtype: bool = True
    shorter: bool = False
    """Whether it holds a part of the baseline's alone."""


@dataclass(frozen=True)
class Matching:
    """All inputs of a variant against the baseline's, of which there are `baseline`."""

    inputs: tuple[Matched, ...]
    baseline: int

    @property
    def missing(self) -> int:
        """Inputs of the baseline that none of the variant's was found to hold."""
        return self.baseline - len({matched.index for matched in self.inputs if matched.index >= 0})

    def all_are(self, relations: Collection[Relation]) -> bool:
        """Whether each of the baseline's has a counterpart, and all counterparts are of these kinds."""
        return not self.missing and all(
            matched.relation in relations for matched in self.inputs if matched.relation != Relation.OTHER
        )


class Memory:
    """What is remembered of a tensor: its size, some of its values, and figures of all of them."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.numel, self.shape, self.dtype, self.nbytes = tensor.numel(), tensor.shape, tensor.dtype, tensor.nbytes
        places = torch.linspace(0, max(self.numel - 1, 0), min(self.numel, _SAMPLES), dtype=torch.float64)
        self._places = torch.unique_consecutive(places.round().long())
        self._values = at(tensor, self._places)
        self._figures = _figures(tensor)

    def relation(self, tensor: torch.Tensor, tolerance: float) -> Relation:
        """Of another tensor to this one."""
        numel = tensor.numel()
        if not numel or not self.numel:
            return Relation.SAME if numel == self.numel else Relation.OTHER
        if numel == self.numel:
            relation = self._elementwise(at(tensor, self._places), tolerance)
            allowed = max(tolerance, _FIGURES) * float(self._figures.abs().max())
            alike = torch.allclose(_figures(tensor), self._figures, rtol=0.0, atol=allowed)
            return Relation.REORDERED if alike and relation == Relation.OTHER else relation
        shared = self._places < min(numel, self.numel)
        if not _close(at(tensor, self._places[shared]), self._values[shared], tolerance):
            return Relation.OTHER
        if numel % self.numel == 0:
            last = self._places + numel - self.numel
            if _close(at(tensor, last), self._values, tolerance):
                return Relation.REPEATED
        return Relation.PREFIX

    def _elementwise(self, values: torch.Tensor, tolerance: float) -> Relation:
        if _close(values, self._values, tolerance):
            return Relation.SAME
        product = torch.dot(values, self._values) / torch.dot(self._values, self._values)
        allowed = max(tolerance, _QUANTIZED)
        return Relation.SCALED if product and _close(values, self._values * product, allowed) else Relation.OTHER


def at(tensor: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """The values at places of the logical order, in float64 on the host (complex ones as their sizes)."""
    index = _index(places.to(tensor.device), tensor.shape)
    narrow = tensor.element_size() == 1 and tensor.is_floating_point()
    raw = (tensor.view(torch.uint8) if narrow else tensor)[index].reshape(-1)
    values = (raw.view(tensor.dtype).float() if narrow else raw).cpu()
    return (values.abs() if values.is_complex() else values).double()


def _index(places: torch.Tensor, shape: torch.Size) -> tuple[torch.Tensor, ...]:
    """`torch.unravel_index`, which imports sympy at its first call: two seconds of every process."""
    index: list[torch.Tensor] = []
    for size in reversed(shape):
        index.append(places % size)
        places = places // size
    return tuple(reversed(index))


def match(baseline: Sequence[Memory], inputs: Sequence[torch.Tensor], tolerance: float) -> Matching:
    """For each input of a variant the baseline's that it holds: the one of its own place where that fits.

    RefusedError where the inputs cannot be those that the step should read.
    """
    results: list[Matched] = []
    taken: set[int] = set()
    for index, tensor in enumerate(inputs):
        others = sorted(range(len(baseline)), key=lambda place: (place != index, place in taken))
        relations = ((place, baseline[place].relation(tensor, tolerance)) for place in others)
        place, relation = next((pair for pair in relations if pair[1] != Relation.OTHER), (-1, Relation.OTHER))
        is_float = tensor.is_floating_point() or tensor.is_complex()
        if place < 0:
            results.append(Matched(relation, is_float=is_float))
            continue
        taken.add(place)
        memory = baseline[place]
        same_dtype, shorter = tensor.dtype == memory.dtype, tensor.numel() < memory.numel
        results.append(Matched(relation, memory.numel, place, is_float, same_dtype, shorter))
    _require(baseline, inputs, results, taken)
    return Matching(tuple(results), len(baseline))


def identity(inputs: Sequence[torch.Tensor]) -> Matching:
    """The baseline's own inputs against themselves."""
    return Matching(
        tuple(
            Matched(Relation.SAME, tensor.numel(), index, tensor.is_floating_point() or tensor.is_complex())
            for index, tensor in enumerate(inputs)
        ),
        len(inputs),
    )


def _require(
    baseline: Sequence[Memory], inputs: Sequence[torch.Tensor], results: Sequence[Matched], taken: set[int]
) -> None:
    missing = [memory for index, memory in enumerate(baseline) if index not in taken]
    others = [(index, tensor) for index, tensor in enumerate(inputs) if results[index].relation == Relation.OTHER]
    for index, tensor in others:
        alike = index < len(baseline) and index not in taken and baseline[index].shape == tensor.shape
        if alike and baseline[index].dtype == tensor.dtype:
            raise RefusedError(finding("inputs_differ", input=index + 1, inputs=len(inputs)), check=CheckKind.INPUTS)
    given, wanted = sum(tensor.nbytes for _, tensor in others), sum(memory.nbytes for memory in missing)
    if wanted and given * _SHRUNK <= wanted:
        elements = sum(tensor.numel() for tensor in inputs)
        expected = sum(memory.numel for memory in baseline)
        reason = finding("inputs_too_small", elements=elements, baseline=expected)
        raise RefusedError(reason, check=CheckKind.INPUTS)


def _close(values: torch.Tensor, expected: torch.Tensor, tolerance: float) -> bool:
    return bool(torch.linalg.vector_norm(values - expected) <= tolerance * torch.linalg.vector_norm(expected))


def _figures(tensor: torch.Tensor) -> torch.Tensor:
    """Smallest, largest, mean and mean square of all elements."""
    if not tensor.numel() or tensor.is_complex():
        return torch.zeros(4, dtype=torch.float64)
    wide = tensors.computable(tensors.on_gpu_if_large(tensor))
    mean = wide.sum(dtype=torch.float64) / wide.numel()
    norm = torch.linalg.vector_norm(wide.float() if not wide.is_floating_point() else wide, dtype=torch.float64)
    return torch.stack([wide.amin().double(), wide.amax().double(), mean, norm / wide.numel() ** 0.5]).cpu()
