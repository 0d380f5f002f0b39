"""The lessons' Triton kernels compiled without a GPU.

    # -> [CompiledKernel]: as the lesson launches them on that GPU
    compiled_kernels("triton_matmul", "tuned", 90)

A variant is built and does one step on tensors of the "meta" device, which have sizes and no
memory, at the lesson's own parameters; each launch compiles its kernel for the architecture and
records it in place of running it. So Triton itself derives signatures, alignments and constants
from the arguments, as it does on a GPU.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import mock

import triton
import triton_lessons
from triton.backends.compiler import GPUTarget
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction
from triton_lessons import SkippedError

SMS = {80: 108, 90: 132, 100: 148}
MOST_SHARED_BYTES = {80: 163 * 1024, 90: 227 * 1024, 100: 227 * 1024}
"""Of a block (CUDA C++ Programming Guide, technical specifications per compute capability)."""
_TENSOR_MEMORY = 512  # columns
_TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


@dataclass(frozen=True)
class CompiledKernel:
    """What one launch is made of. `candidate` is that of `gpulab.tune` by which it was launched,
    None without it.
    """

    name: str
    arch: int
    grid: tuple[int, ...]
    candidate: dict | None
    compiled: Any
    """Triton's own: `asm` has "ttgir", "ptx" and "cubin", `metadata` warps, stages and bytes of
    shared memory.
    """

    @property
    def ptx(self) -> str:
        return self.compiled.asm["ptx"]

    @property
    def warps(self) -> int:
        """Of a program; where warps have different tasks, all of them."""
        return self.compiled.metadata.num_warps

    @property
    def stages(self) -> int:
        return self.compiled.metadata.num_stages

    @property
    def shared_bytes(self) -> int:
        return self.compiled.metadata.shared

    @property
    def registers(self) -> int:
        """Of a thread, at the launch."""
        return self._usage["REG"]

    @property
    def stack_bytes(self) -> int:
        """Of local memory for each thread: what is spilled, and arrays; Triton calls it spills."""
        return self._usage["STACK"]

    @cached_property
    def _usage(self) -> dict[str, int]:
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            Path(file.name).write_bytes(self.compiled.asm["cubin"])
            command = [_TOOLS / "cuobjdump", "--dump-resource-usage", file.name]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return {key: int(value) for key, value in re.findall(r"\b(REG|STACK):(\d+)", text)}


class _Device(str):
    """Where tensors need no memory; lessons that ask for its type take it for a GPU."""

    type, index = "cuda", 0


class _Lab(triton_lessons.Lab):
    """Builds of a GPU that is not there."""

    def __init__(self, arch):
        super().__init__(_Device("meta"), SMS[arch])
        self.candidate = None

    def tune(self, candidates, make):
        """The first that the device can do, as in a smoke run."""
        for candidate in candidates:
            self.candidate = candidate
            with suppress(OutOfResources):
                work = make(**candidate)
                work.step()
                return work
        return self.skip("no candidate fits")


class _Driver:
    """Triton's door to a device: it only says for which one to compile, by whose number functions
    keep their code.
    """

    def __init__(self, arch, kernels):
        self._arch = arch
        self._kernels = kernels

    def get_benchmarker(self):
        return self._launched_once

    def _launched_once(self, call, quantiles):
        """For `triton.autotune`: all that the device can do are as fast, so it takes the first."""
        before = len(self._kernels)
        call()
        del self._kernels[before:]
        return [0.0 for _ in quantiles]

    def get_current_target(self):
        return GPUTarget("cuda", self._arch, 32)

    def get_current_device(self):
        return self._arch

    def get_current_stream(self, _device):
        return 0


def compiled_kernels(lesson: str, variant: str, arch: int, **params) -> list[CompiledKernel]:
    """The kernels that a step of a variant launches on that architecture, each once, in the order
    of launches.

    `params` in place of the lesson's own. None where the lesson leaves the variant out there, or
    the variant has no kernel in Triton, as a library's for scale.
    """
    module = triton_lessons.lesson(lesson)
    lab, kernels = _Lab(arch), []
    capability = mock.patch("torch.cuda.get_device_capability", return_value=divmod(arch, 10))
    with _launches_recorded(arch, lab, kernels), capability:
        try:
            triton_lessons.build(module, lab, variant, **params).step()
        except SkippedError:
            return []
    return kernels


@contextmanager
def _launches_recorded(arch, lab, kernels):
    """Each launch inside compiles its kernel. OutOfResources where the device could not run it."""
    run, active = JITFunction.run, triton.runtime.driver._active

    def record(function, *args, grid, warmup=False, **kwargs):
        compiled = run(function, *args, grid=grid, warmup=True, **kwargs)
        metadata = compiled.metadata
        if metadata.shared > MOST_SHARED_BYTES[arch]:
            raise OutOfResources(metadata.shared, MOST_SHARED_BYTES[arch], "shared memory")
        if (getattr(metadata, "tmem_size", None) or 0) > _TENSOR_MEMORY:
            raise OutOfResources(metadata.tmem_size, _TENSOR_MEMORY, "tensor memory")
        if callable(grid):
            grid = grid(kwargs)
        if not any(kernel.compiled is compiled for kernel in kernels):
            kernels.append(
                CompiledKernel(function.__name__, arch, tuple(grid), lab.candidate, compiled)
            )
        return compiled

    triton.runtime.driver.set_active(_Driver(arch, kernels))
    try:
        with mock.patch.object(JITFunction, "run", record):
            yield
    finally:
        triton.runtime.driver.set_active(active)
