"""Kernels of a build, in CUDA C++ and Triton, and what the compiler made of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial

from gpulab.core.payloads import KernelCode, KernelText

Made = tuple[KernelText, str]
"""A kernel, and the file that it is from."""


def kernels_made(keep: Iterable[Made] = ()) -> list[Made]:
    """The kernels that were made since the last call, of which the next one has those to `keep`;
    none where no scenario has asked for any.
    """
    source = sys.modules.get("gpulab.features.kernels.source")
    if source is None:
        return []
    return source.kernels_made(keep)  # type: ignore[no-any-return]


def readers_of_made() -> list[Callable[[], KernelCode]]:
    """Return what reads each kernel that was made since the last call, for the device here."""
    made = kernels_made()
    if not made:
        return []
    from gpulab.features.kernels.reading import read_kernel
    from gpulab.features.kernels.source import current_arch

    return [partial(read_kernel, text, current_arch(), file) for text, file in made]


def readers_of_launched(step: Callable[[], object]) -> list[Callable[[], KernelCode]]:
    """Return what reads each Triton kernel that a step launches; nothing where no scenario has
    imported it.
    """
    if "triton.runtime.jit" not in sys.modules:
        return []
    from gpulab.features.kernels.reading import launched, read_triton_kernel

    with launched() as kernels:
        step()
    return [partial(read_triton_kernel, kernel) for kernel in kernels]
