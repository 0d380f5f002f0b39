"""Compile the kernels of the lessons that ship, and keep what came out:
`python benchmarks/kernels.py`.

Where nothing can be compiled, the app and `--show` say from there how the variants of a lesson
differ.
"""

import sys
from pathlib import Path

import msgspec

from gpulab.catalog.catalog import read_file
from gpulab.catalog.kernels import kernels_of
from gpulab.features.kernels.reading import read_kernel, read_triton_kernel

ROOT = Path(__file__).parent.parent
KEPT, ARCH = ROOT / "gpulab" / "kernels.json", "sm_90"
TRITON = "import triton"


def kernel_texts(entry):
    """The kernels of a lesson with its own parameters, by variant."""
    return kernels_of(entry.source, tuple(entry.scenario.variants), entry.scenario.params)


def compiled(entry):
    """What the compilers make of them."""
    file, texts = str(entry.path), kernel_texts(entry)
    made = {
        name: [read_kernel(text, ARCH, file) for text in kernels] for name, kernels in texts.items()
    }
    made |= of_triton(entry) if TRITON in entry.source else {}
    return {name: made[name] for name in entry.scenario.variants if made.get(name)}


def of_triton(entry):
    """What Triton makes of the kernels that a step launches; of candidates, of the first that
    fits.
    """
    sys.path.append(str(ROOT / "tests" / "scenarios" / "triton"))
    from offline import compiled_kernels

    made = {}
    for name in entry.scenario.variants:
        if needs_triton(entry, name):
            kernels = compiled_kernels(entry.path.stem, name, int(ARCH.removeprefix("sm_")))
            made[name] = [
                read_triton_kernel(
                    kernel.compiled, registers=kernel.registers, spill_bytes=kernel.stack_bytes
                )
                for kernel in kernels
            ]
    return made


def needs_triton(entry, variant):
    return "triton" in (*entry.scenario.needs, *entry.scenario.variants[variant].needs)


def lessons():
    """Those with kernels."""
    entries = [read_file(path) for path in sorted((ROOT / "scenarios").glob("*.py"))]
    return [
        entry
        for entry in entries
        if entry.scenario and ("CudaSource(" in entry.source or TRITON in entry.source)
    ]


def main():
    kept = {entry.sha256: compiled(entry) for entry in lessons()}
    lines = msgspec.json.encode(kept).replace(b"},{", b"},\n{").replace(b"}],", b"}],\n")
    KEPT.write_bytes(lines + b"\n")


if __name__ == "__main__":
    main()
