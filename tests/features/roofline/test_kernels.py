"""The CUDA C++ of the ceilings compiles for every architecture, without a GPU, and without a
register spilled.
"""

import pytest

from gpulab.core.payloads import KernelText
from gpulab.features.kernels.compiler import compile_kernel
from gpulab.features.roofline.probes import CHAINS, SOURCE


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("name", ["fma_fp32", "fma_fp64", "read_l2"])
def test_the_kernels_compile_and_stay_in_registers(name, arch):
    compiled = compile_kernel(KernelText(name, SOURCE, 1), arch)
    assert len(compiled.cubin) > 1000
    assert compiled.registers
    assert compiled.spill_bytes == 0


def test_the_source_has_as_many_chains_as_are_counted():
    assert f"T x[{CHAINS}]" in SOURCE
    assert f"k < {CHAINS};" in SOURCE
