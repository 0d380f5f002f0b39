"""Tests of kernels find their helpers beside them."""

import sys
from functools import partial
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture
def load(monkeypatch):
    """A kernel of a source by its name, on the CPU; `backward` runs its last thread first."""
    from shim import load_on_cpu

    def kernel(source, name, threads=32, backward=False, shared_bytes=0, **options):
        monkeypatch.setattr("gpulab.cuda.source.load", partial(load_on_cpu, backward=backward, **options))
        return source.kernel(name, threads=threads, shared_bytes=shared_bytes)

    return kernel
