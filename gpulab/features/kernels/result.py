"""The kernels of a variant: its part of the report."""

from __future__ import annotations

import msgspec

from gpulab.core.payloads import KernelCode
from gpulab.features.kernels.differences import KernelDifference


class VariantPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a variant's report about its kernels."""

    kernels: list[KernelCode] = []
    """CUDA C++ of its own, as the compiler made it."""
    kernel_difference: KernelDifference | None = None
    """Its kernels against those of the variant that it is compared with."""
