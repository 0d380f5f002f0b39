"""Answers that know nothing of a step: a comparison that one of them passes proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from gpulab.engine.build import tensors

_MOST_DIMENSIONS = 4
Agree = Callable[[list[torch.Tensor], list[torch.Tensor]], bool]
"""Whether an output passes for a reference."""


def passing(
    reference: list[torch.Tensor], inputs: Sequence[torch.Tensor], agree: Agree
) -> dict[str, bool]:
    """By the name of each null answer whether it passes for the reference; all should fail.

    A single number has no spread: of it only zero is tried.
    """
    return {name: agree(answer, reference) for name, answer in _answers(reference, inputs)}


def _answers(
    reference: list[torch.Tensor], inputs: Sequence[torch.Tensor]
) -> Iterator[tuple[str, list[torch.Tensor]]]:
    yield "zeros", [torch.zeros_like(tensor) for tensor in reference]
    if all(tensor.numel() <= 1 for tensor in reference):
        return
    yield "the mean", [_mean(tensor, range(tensor.dim())) for tensor in reference]
    for axis in range(min(max(tensor.dim() for tensor in reference), _MOST_DIMENSIONS)):
        # One number along an axis, and all the others as they should be.
        if any(tensor.dim() > axis and tensor.shape[axis] > 1 for tensor in reference):
            yield f"one value along axis {axis}", [_mean(tensor, (axis,)) for tensor in reference]
    yield "noise", [_noise(tensor) for tensor in reference]
    for index, tensor in enumerate(inputs):
        # A copy is right where the step copies.
        if (
            len(reference) == 1
            and tensor.numel() == reference[0].numel()
            and not _is_copy(tensor, reference[0])
        ):
            yield f"input {index + 1}", [tensor.detach().clone()]


def _mean(tensor: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    axes = [axis for axis in axes if axis < tensor.dim()]
    if not axes or not tensor.numel():
        return tensor.clone()
    wide = _wide(tensor)
    mean = wide.mean(dim=axes, keepdim=True).expand(tensor.shape)
    return _narrow(mean, tensor)


def _noise(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.numel() < 2:
        return tensor.clone()
    wide = _wide(tensor)
    draw = torch.Generator(tensor.device).manual_seed(tensor.numel())
    noise = torch.randn(tensor.shape, generator=draw, device=tensor.device, dtype=wide.dtype)
    return _narrow(noise * wide.std() + wide.mean(), tensor)


def _is_copy(tensor: torch.Tensor, reference: torch.Tensor) -> bool:
    return bool(
        (_wide(tensor).reshape(-1).to(reference.device) == _wide(reference).reshape(-1)).all()
    )


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensors.computable(tensor)
    return tensor if tensor.is_floating_point() or tensor.is_complex() else tensor.double()


def _narrow(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    is_float = like.is_floating_point() or like.is_complex()
    return (values if is_float else values.round()).to(like.dtype)
