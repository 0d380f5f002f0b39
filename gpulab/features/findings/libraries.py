"""Whose kernels and operations a step runs, by their names."""

from __future__ import annotations

import re
from collections import defaultdict

from gpulab.core.payloads import Operation
from gpulab.features.findings.step import Step

_BY_NAME = (
    ("NCCL", re.compile(r"nccl", re.IGNORECASE)),
    ("FlashAttention", re.compile(r"flash_(fwd|bwd)|pytorch_flash|flash_attn")),
    ("CUTLASS", re.compile(r"cutlass|fmha_cutlass")),
    ("cuDNN", re.compile(r"cudnn|implicit_convolve|winograd|xmma_(f|d|w)(prop|grad)|bn_fw|bn_bw")),
    (
        "cuBLAS",
        re.compile(r"cublas|nvjet|xmma_gemm|(ampere|volta|turing|sm\d+)_\w*gemm|gemv|gemmk"),
    ),
    ("cuFFT", re.compile(r"(vector|regular)_fft|cufft")),
    ("Triton", re.compile(r"^triton_|^_?\w*_triton")),
    ("CUB and Thrust", re.compile(r"cub::|thrust::")),
    ("PyTorch", re.compile(r"at::native|at_cuda_detail|multi_tensor_apply")),
)
_ON_CPU = (
    ("oneDNN", re.compile(r"mkldnn|onednn")),
    ("MKL (torch's BLAS)", re.compile(r"aten::(mm|addmm|bmm|baddbmm|mv|dot|linalg_\w+)$")),
    ("compiled code", re.compile(r"CompiledFxGraph|cpp_fused|Torch-Compiled")),
    ("PyTorch", re.compile(r"^aten::|^autograd::|^torch")),
)
_VENDORS = frozenset({"NCCL", "FlashAttention", "CUTLASS", "cuDNN", "cuBLAS", "cuFFT", "Triton"})
OWN = "its own kernels"


def library_of(row: Operation) -> str | None:
    """Whose kernel, or operation of a CPU, a row is; None where its name does not say."""
    names = _BY_NAME if row.on_device else _ON_CPU
    return next((name for name, pattern in names if pattern.search(row.name)), None)


def libraries(step: Step) -> dict[str, float]:
    """Shares of the step by library, the largest first; kernels that are no library's are its
    own.
    """
    on_device = any(row.on_device for row in step.operations)
    shares: dict[str, float] = defaultdict(float)
    for row in step.operations:
        if row.on_device != on_device or row.name.startswith("Mem"):
            continue
        name = library_of(row)
        if name is None and on_device:
            name = OWN
        if name is not None:
            shares[name] += row.share
    return dict(sorted(shares.items(), key=lambda entry: -entry[1]))


def vendor_share(step: Step) -> float:
    """Share of the step in kernels of a vendor's library."""
    return sum(share for name, share in libraries(step).items() if name in _VENDORS)
