"""CUDA C++ kernels in a scenario's file: `from gpulab.cuda import CudaSource`.

The source is a string of the file. NVRTC compiles it, CuPy loads it, and it runs on torch's current
stream and memory. What the compiler made of it can be read without a GPU: registers, spills,
occupancy and instructions.
"""

from gpulab.features.kernels.compiler import CompileError as CompileError
from gpulab.features.kernels.source import CudaSource as CudaSource
from gpulab.features.kernels.source import Kernel as Kernel

__all__ = ["CompileError", "CudaSource", "Kernel"]
