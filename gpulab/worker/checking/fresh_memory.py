"""What fresh memory holds when a step takes it: nothing that a result may depend on."""

from __future__ import annotations

from collections.abc import Sequence

import torch

PATTERNS = (0xFF, 0x41)
"""Bytes: NaN in every kind of float, and some number (12.08 in float32)."""
_SIZES = tuple(1 << power for power in range(9, 23))
_OF_EACH = 2
_MOST = 1 << 30


@torch.inference_mode()
def fill(device: torch.device, outputs: Sequence[torch.Tensor], pattern: int) -> None:
    """Write a byte all over memory that the allocator gives out next: blocks as large as the outputs, and smaller."""
    sizes = [*(tensor.nbytes for tensor in outputs if tensor.nbytes <= _MOST), *_SIZES]
    blocks = []
    try:
        for size in sizes:
            for _ in range(_OF_EACH):
                blocks.append(torch.full((size,), pattern, dtype=torch.uint8, device=device))
    except RuntimeError:  # there is no room for more
        pass
    blocks.clear()
