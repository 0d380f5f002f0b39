"""Kernels in Triton compile without a GPU as the lessons launch them, and hold the instructions
that they are about.
"""

from functools import cache

import pytest
import triton_lessons

pytest.importorskip("triton.language", reason="Triton is not installed", exc_type=ImportError)

import triton
from offline import JITFunction, compiled_kernels, compiled_kernels_of
from triton.compiler.errors import CompilationError

SLOW = [pytest.param(arch, marks=pytest.mark.slow) for arch in (80, 100)]
NO_KERNEL = {
    **{("triton_matmul", "cublas", arch): "a library's" for arch in (80, 90, 100)},
    **{("persistent_matmul", "cublas", arch): "a library's" for arch in (80, 90, 100)},
    ("persistent_matmul", "by_tma", 80): "Ampere has no tensor memory accelerator",
    ("persistent_matmul", "specialized", 80): "Ampere has no tensor memory accelerator",
    ("persistent_matmul", "specialized", 90): "Triton specializes warps on Blackwell",
}
SPILLS = {
    (
        "attention",
        "in_triton",
        80,
    ): "mma.sync wants weights and queries in registers; larger blocks of 8 warps do not",
    (
        "persistent_matmul",
        "flattened",
        100,
    ): "8 bytes: addresses of the next tile beside the sums of this one",
}
BEFORE = JITFunction.run, triton.runtime.driver._active


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory):
    """What is compiled here is compiled, and nothing of the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        yield


@cache
def kernels(name, variant, arch=90, **params):
    return compiled_kernels(name, variant, arch, **params)


def kernel(name, variant, arch=90, **params):
    """The one that a variant launches."""
    (only,) = kernels(name, variant, arch, **params)
    return only


def variants(name):
    return list(triton_lessons.variants(triton_lessons.lesson(name)))


def require(kernel, present=(), absent=()):
    """Instructions that the PTX of a kernel has to have, and those that it may not."""
    missing = [instruction for instruction in present if instruction not in kernel.ptx]
    assert not missing, f"{kernel} has no {missing}"
    unwanted = [instruction for instruction in absent if instruction in kernel.ptx]
    assert not unwanted, f"{kernel} has {unwanted}"


@pytest.mark.slow
@pytest.mark.parametrize("arch", [90, *SLOW])
@pytest.mark.parametrize("name", triton_lessons.names())
def test_kernels_compile_and_do_not_spill(name, arch):
    for variant in variants(name):
        found = kernels(name, variant, arch)
        assert bool(found) == ((name, variant, arch) not in NO_KERNEL)
        for each in found:
            print(name, variant, each)
            assert each.registers > 0
            assert f".target sm_{arch}" in each.ptx
            assert (each.stack_bytes > 0) == ((name, variant, arch) in SPILLS), each


@pytest.mark.parametrize("arch", [90, *SLOW])
@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_vector_add_loads_16_bytes_where_the_length_is_a_multiple_of_16(arch, dtype):
    scalar = {"fp32": "ld.global.b32", "fp16": "ld.global.b16"}[dtype]
    wide, narrow = (
        kernel("vector_add", "in_triton", arch, dtype=dtype, n=n)
        for n in (128 * 2**20, 128 * 2**20 - 1)
    )
    require(wide, ["ld.global.v4.b32", "st.global.v4.b32"], [scalar])
    require(narrow, [scalar], ["ld.global.v"])
    assert wide.ptx.count("ld.global.v4.b32") == 2
    assert narrow.ptx.count(scalar) == 2 * 16 // {"fp32": 4, "fp16": 2}[dtype]


@pytest.mark.parametrize("arch", [90, *SLOW])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("fused_softmax", marks=pytest.mark.slow),
        "layernorm_gelu",
        "reduction",
        "small_kernels",
    ],
)
def test_what_memory_limits_loads_16_bytes_at_a_time(name, arch):
    for found in kernels(name, "in_triton", arch):
        require(found, ["ld.global.v4.b32"], ["ld.global.b32"])


@pytest.mark.parametrize("arch", [90, *SLOW])
def test_small_tiles_are_left_with_the_instruction_of_ampere(arch):
    require(
        kernel("triton_matmul", "untuned", arch), ["mma.sync", "cp.async.cg"], ["wgmma", "tcgen05"]
    )


def test_registers_that_do_not_suffice_are_seen():
    """As the lesson says: a row of 65536 floats does not fit into the registers of a program."""
    assert kernel("layernorm_gelu", "in_triton", columns=65536).stack_bytes > 100


def test_a_kernel_that_does_not_compile_is_an_error(tmp_path):
    path = tmp_path / "wrong.py"
    text = (triton_lessons.SCENARIOS / "vector_add.py").read_text()
    path.write_text(text.replace("inside = place < n", "inside = nowhere < n"))
    with pytest.raises(CompilationError, match="nowhere"):
        compiled_kernels_of(triton_lessons.load(path), "in_triton", 90)
    assert (JITFunction.run, triton.runtime.driver._active) == BEFORE


def test_triton_is_left_as_it_was():
    (found,) = compiled_kernels("utilization", "full_grid", 90)
    assert (found.name, found.grid, found.warps, found.candidate) == ("_squares", (8192,), 32, None)
    assert (JITFunction.run, triton.runtime.driver._active) == BEFORE
