"""Rows of a file: read, or mapped into memory, and closed at the end."""

import tempfile

import numpy as np

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, N = 256, 128


@scenario.variant
def read(lab):
    with tempfile.NamedTemporaryFile() as file:
        write(file.name)
        yield Work(lambda: np.fromfile(file.name, "float32").reshape(ROWS, N).sum(0))


@scenario.variant
def mapped(lab):
    with tempfile.NamedTemporaryFile() as file:
        write(file.name)
        rows = np.memmap(file.name, "float32", "r", shape=(ROWS, N))
        yield Work(lambda: rows.sum(0))


def write(path):
    np.random.rand(ROWS, N).astype("float32").tofile(path)
