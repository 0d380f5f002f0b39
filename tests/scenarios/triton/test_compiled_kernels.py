"""Kernels in Triton compile without a GPU as the lessons launch them, and hold the instructions
that they are about.
"""

from functools import cache

import pytest
import triton_lessons

pytest.importorskip("triton.language", reason="Triton is not installed", exc_type=ImportError)

from offline import compiled_kernels

SLOW = [pytest.param(arch, marks=pytest.mark.slow) for arch in (80, 100)]
NO_KERNEL = {
    **{("triton_matmul", "cublas", arch): "a library's" for arch in (80, 90, 100)},
    **{("persistent_matmul", "cublas", arch): "a library's" for arch in (80, 90, 100)},
    **{("triton_autotune", "cublas", arch): "a library's" for arch in (80, 90, 100)},
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


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory):
    """What is compiled here is compiled, and nothing of the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        yield


@cache
def kernels(name, variant, arch=90, **params):
    return compiled_kernels(name, variant, arch, **params)


def variants(name):
    return list(triton_lessons.variants(triton_lessons.lesson(name)))


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
        assert "ld.global.v4.b32" in found.ptx
        assert "ld.global.b32" not in found.ptx
