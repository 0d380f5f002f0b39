"""Every kernel of every lesson compiles without a GPU, and what the package keeps of them is what comes out."""

import pytest
from kernels import compiled, lessons

from gpulab.catalog.kernels import kernels_of, shipped_kernels

LESSONS = lessons()
NAMES = [entry.name for entry in LESSONS]
WITH_SOURCES = {
    *("coalescing", "vectorized_loads", "arithmetic_intensity", "roofline_walk", "loop_unrolling", "launch_bounds"),
    *("restrict_pointers", "shared_memory_tiling", "shared_memory_prefetch", "divergence", "occupancy", "reduction"),
}


def test_the_lessons_are_all_there():
    assert set(NAMES) >= WITH_SOURCES


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("entry", LESSONS, ids=NAMES)
def test_its_kernels_compile(entry, arch, record_property):
    for name, kernels in compiled(entry, arch).items():
        for kernel in kernels:
            assert kernel.registers > 0
            assert kernel.occupancy, f"{name}: {kernel.name} does not fit on an SM"
            record_property(kernel.name, f"{kernel.registers} registers, {kernel.spill_bytes} bytes spilled")
            print(f"{entry.name} {name} {kernel.name} {arch}: {kernel.registers} registers,", end=" ")
            print(f"{kernel.spill_bytes} bytes spilled")
            if entry.name != "launch_bounds":
                assert kernel.spill_bytes == 0, f"{name}: {kernel.name} spills on {arch}"


@pytest.mark.parametrize("entry", LESSONS, ids=NAMES)
def test_what_is_kept_of_it_is_what_the_compiler_makes(entry):
    assert shipped_kernels(entry.source) == compiled(entry), "run: python tests/kernels.py"


@pytest.mark.parametrize("entry", LESSONS, ids=NAMES)
def test_every_variant_with_code_of_its_own_names_its_kernels(entry):
    """In its own function, so that they can be read without running the file."""
    texts = kernels_of(entry.source, tuple(entry.scenario.variants), entry.scenario.params)
    assert len(texts) >= 2
    assert all(text.threads for kernels in texts.values() for text in kernels)
