"""CUDA C++ kernels of a build: which were made, and what the compiler made of them."""

from __future__ import annotations

import sys

from gpulab.protocol.kernels import KernelCode, KernelText

Made = tuple[KernelText, str]
"""A kernel, and the file that it is from."""


def kernels_made() -> list[Made]:
    """The kernels that were made since the last call; none where no scenario has asked for any."""
    source = sys.modules.get("gpulab.cuda.source")
    return source.kernels_made() if source is not None else []


def read(made: Made) -> KernelCode:
    """What the compiler made of it for the device here."""
    from gpulab.cuda.device import current_arch
    from gpulab.cuda.reading import read_kernel

    text, file = made
    return read_kernel(text, current_arch(), file)
