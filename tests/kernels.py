"""Compile the kernels of the lessons that ship, and keep what came out: `python tests/kernels.py`.

Where nothing can be compiled, the app and `--show` say from there how the variants of a lesson differ.
"""

from pathlib import Path

import msgspec

from gpulab.catalog.catalog import read_file
from gpulab.catalog.kernels import kernels_of
from gpulab.cuda.reading import read_kernel

ROOT = Path(__file__).parent.parent
KEPT, ARCH = ROOT / "gpulab" / "kernels.json", "sm_90"


def kernel_texts(entry):
    """The kernels of a lesson with its own parameters, by variant."""
    return kernels_of(entry.source, tuple(entry.scenario.variants), entry.scenario.params)


def compiled(entry):
    """What the compiler makes of them."""
    file, texts = str(entry.path), kernel_texts(entry)
    return {name: [read_kernel(text, ARCH, file) for text in kernels] for name, kernels in texts.items()}


def lessons():
    """Those with kernels."""
    entries = [read_file(path) for path in sorted((ROOT / "scenarios").glob("*.py"))]
    return [entry for entry in entries if entry.scenario and "CudaSource(" in entry.source]


def main():
    kept = {entry.sha256: compiled(entry) for entry in lessons()}
    lines = msgspec.json.encode(kept).replace(b"},{", b"},\n{").replace(b"}],", b"}],\n")
    KEPT.write_bytes(lines + b"\n")


if __name__ == "__main__":
    main()
