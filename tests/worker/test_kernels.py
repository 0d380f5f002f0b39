"""The CUDA C++ of the ceilings compiles for every architecture, without a GPU, and without a register spilled."""

import io

import pytest

from gpulab.worker.calibration.kernels import CHAINS, SOURCE


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_the_kernels_compile_and_stay_in_registers(arch):
    cuda = pytest.importorskip("cuda.core")
    log = io.StringIO()
    options = cuda.ProgramOptions(arch=arch, std="c++17", ptxas_options="-v")
    binary = cuda.Program(SOURCE, "c++", options).compile("cubin", logs=log)
    assert len(binary.code) > 1000
    output = log.getvalue()
    for name in ("fma_fp32", "fma_fp64", "read_l2"):
        assert f"entry function '{name}'" in output
    assert output.count("0 bytes spill stores, 0 bytes spill loads") == 3


def test_the_source_has_as_many_chains_as_are_counted():
    assert f"T x[{CHAINS}]" in SOURCE
    assert f"k < {CHAINS};" in SOURCE
