"""What the compiler made of the kernels of a variant."""

from __future__ import annotations

from gpulab.core.events import VariantEvent
from gpulab.core.payloads import KernelCode


class KernelsCompiled(VariantEvent, frozen=True):
    """The compiled CUDA C++ kernels of a variant's first build."""

    kernels: list[KernelCode]
