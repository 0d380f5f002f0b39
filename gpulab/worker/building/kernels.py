"""CUDA C++ kernels of a build: what the compiler made of them."""

from __future__ import annotations

import sys

from gpulab.protocol.kernels import KernelCode


def kernels_of_builds() -> list[KernelCode]:
    """Of the kernels that were made since the last call, as they were loaded; nothing where no scenario has any."""
    source = sys.modules.get("gpulab.cuda.source")
    made = source.kernels_made() if source is not None else []
    if not made:
        return []
    from gpulab.cuda.device import current_arch
    from gpulab.cuda.reading import read_kernel

    arch = current_arch()
    return [read_kernel(text, arch, file) for text, file in made]
