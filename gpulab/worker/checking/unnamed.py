"""What a step reads and its Work does not name: tensors that a build made, which no change of its inputs reaches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gpulab.worker.building import compiled, tensors
from gpulab.worker.building.build import Build

_STEPS, _FEWEST = 3, 16
"""Steps that are looked into, and elements of a tensor that is worth a word: smaller ones are constants and factors."""
_SAMPLES, _WIDE = 256, 4
_ALIKE = 3e-4
"""By what part figures of the same values may differ: in another order, or another precision."""
_WRITES = ("aten::copy_", "aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_", "aten::bernoulli_")
Figures = tuple[int, float, float, float]
"""Of a tensor: how many elements, their sum, the sum of their sizes, and of their squares."""


class _Reads(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Collects tensors that an operation reads before any operation of the step has written to their memory."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.read: dict[int, torch.Tensor] = {}
        self._made: dict[int, torch.Tensor] = {}
        """By address, with what keeps it from being given out again."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.is_view:
            return func(*args, **(kwargs or {}))
        written = _written(func, args, kwargs or {})
        for tensor in _plain((args, kwargs)):
            address = tensor.untyped_storage().data_ptr()
            if address not in self._made and address not in written:
                self.read.setdefault(address, tensor)
        returned = func(*args, **(kwargs or {}))
        for tensor in _plain(returned):
            address = tensor.untyped_storage().data_ptr()
            if address not in self.read:
                self._made[address] = tensor
        return returned


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> set[int]:
    """Memory that an operation writes without reading it."""
    schema = func._schema.arguments
    outs = [kwargs[entry.name] for entry in schema if entry.is_out and entry.name in kwargs]
    if func.name().startswith(_WRITES):
        outs += args[:1]
    return {tensor.untyped_storage().data_ptr() for tensor in _plain(outs)}


def _plain(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided]


def unnamed_of(build: Build, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """What steps read beside inputs and state, at the same address in two of them; nothing where that cannot be seen.

    Libraries other than torch are not seen, nor what a compiled function reads, which would be compiled once more.
    """
    if compiled.frames():
        return []
    named = tensors.storages([*inputs, *build.state])
    try:
        # While what was read is still there, what another step makes lies elsewhere. Buffers may take turns.
        reads = [_reads(build) for _ in range(_STEPS)]
    except Exception:
        return []
    build.restore()
    steps = Counter(address for by_address in reads for address in by_address)
    tensor_at = {address: tensor for by_address in reads for address, tensor in by_address.items()}
    return [
        tensor
        for address, tensor in tensor_at.items()
        if steps[address] > 1 and address not in named and tensor.numel() > _FEWEST
    ]


def _reads(build: Build) -> dict[int, torch.Tensor]:
    """By address, of one step."""
    build.restore()
    mode = _Reads()
    with build.context(), mode:
        build.work.step()
    return mode.read


def figures(tensor: torch.Tensor) -> Figures:
    """What is the same in any order of the elements."""
    wide = tensors.computable(tensor.detach())
    if not wide.is_complex() and (wide.element_size() < _WIDE or not wide.is_floating_point()):
        wide = wide.float()
    size = wide.abs()
    total = float(wide.real.sum(dtype=torch.float64))
    return tensor.numel(), total, float(size.sum(dtype=torch.float64)), float(size.square().sum(dtype=torch.float64))


def in_memory_order(tensor: torch.Tensor) -> torch.Tensor:
    """A view whose last dimension is the innermost in memory."""
    return tensor.permute(sorted(range(tensor.dim()), key=lambda dim: -tensor.stride()[dim]))


def sample(tensor: torch.Tensor) -> torch.Tensor:
    """Some of its values, in their order."""
    flat = tensors.computable(tensor.detach()).reshape(-1)
    step = max(1, flat.numel() // _SAMPLES)
    part = flat[::step].cpu()
    return part.abs().double() if part.is_complex() else part.double()


def unknown(own: Sequence[Figures], known: Sequence[Figures]) -> list[int]:
    """Places of those that hold other values than any that is known."""
    return [place for place, entry in enumerate(own) if not any(_alike(entry, other) for other in known)]


def _alike(entry: Figures, other: Figures) -> bool:
    (numel, total, size, squares), (numel_2, total_2, size_2, squares_2) = entry, other
    if numel != numel_2 or abs(squares - squares_2) > _ALIKE * max(squares, squares_2):
        return False
    allowed = _ALIKE * max(size, size_2)
    return abs(size - size_2) <= allowed and abs(total - total_2) <= allowed
