"""Every kernel of every lesson compiles without a GPU, and what the package keeps of them is what
comes out.
"""

import pytest
from kernels import ARCH, kernel_texts, lessons, needs_triton

from gpulab.catalog.kernels import shipped_kernels
from gpulab.features.kernels.compiler import compile_kernel

ALL = lessons()
LESSONS = [entry for entry in ALL if "CudaSource(" in entry.source]
NAMES = [entry.name for entry in LESSONS]
SPILLS = {
    ("launch_bounds", "four_blocks"),
    ("launch_bounds", "eight_blocks"),
    ("register_remedies", "large_array"),
}
"""What is there to spill."""


@pytest.mark.parametrize(
    "arch", [ARCH, *(pytest.param(arch, marks=pytest.mark.slow) for arch in ("sm_80", "sm_100"))]
)
@pytest.mark.parametrize("entry", LESSONS, ids=NAMES)
def test_its_kernels_compile(entry, arch):
    for name, texts in kernel_texts(entry).items():
        for text in texts:
            made = compile_kernel(text, arch, str(entry.path))
            print(
                f"{entry.name} {name} {text.name} {arch}: {made.registers} registers, "
                f"{made.spill_bytes} B spilled"
            )
            assert made.registers > 0
            assert (made.spill_bytes > 0) == ((entry.name, name) in SPILLS)


@pytest.mark.parametrize("entry", LESSONS, ids=NAMES)
def test_what_is_kept_of_it_is_what_the_compiler_makes(entry):
    kept = shipped_kernels(entry.source)
    made = {
        name: [(text.name, compile_kernel(text, ARCH, str(entry.path)).registers) for text in texts]
        for name, texts in kernel_texts(entry).items()
    }
    in_cuda = {name: codes for name, codes in kept.items() if not needs_triton(entry, name)}
    assert {
        name: [(code.name, code.registers) for code in codes] for name, codes in in_cuda.items()
    } == made, "run: python benchmarks/kernels.py"


@pytest.mark.parametrize(
    "entry", [entry for entry in ALL if "import triton" in entry.source], ids=lambda e: e.name
)
def test_what_is_kept_of_its_kernels_in_triton_is_of_the_lesson_as_it_is(entry):
    kept = shipped_kernels(entry.source)
    assert kept, "run: python benchmarks/kernels.py"
    in_triton = {name: codes for name, codes in kept.items() if needs_triton(entry, name)}
    assert in_triton
    assert all(
        code.stages is not None and code.registers > 0
        for codes in in_triton.values()
        for code in codes
    )
    assert not any(code.spill_bytes for codes in in_triton.values() for code in codes)


@pytest.mark.parametrize("entry", LESSONS, ids=NAMES)
def test_every_variant_with_code_of_its_own_names_its_kernels(entry):
    """In its own function, so that they can be read without running the file."""
    texts = kernel_texts(entry)
    assert len(texts) >= 2
    assert all(text.threads for kernels in texts.values() for text in kernels)
