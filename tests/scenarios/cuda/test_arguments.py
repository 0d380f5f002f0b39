"""Arguments of a kernel become what it declares; those of every lesson fit."""

import numpy as np
import pytest
import torch
from lessons import build, names

from gpulab.core.payloads import KernelText
from gpulab.features.kernels.compiler import compile_kernel
from gpulab.features.kernels.source import _converters

QUICK = ("coalescing", "reduction")
"""Lessons of every test run; the others have kernels of the same arguments."""
SOURCE = """
struct Pair { int a, b; };
__global__ void one(float* a, unsigned char b, short c, int d, long long e, float f, double g, bool h) {}
__global__ void two(Pair pair) {}
"""


def converters(name="one"):
    return _converters(compile_kernel(KernelText(name, SOURCE, 1), "sm_90"))


def test_each_gets_its_size():
    values = (torch.ones(1), 255, -1, -2, 2**40, 1, 0.5, True)
    converted = [convert(value) for convert, value in zip(converters(), values, strict=True)]
    assert converted[0] == values[0].data_ptr()
    assert type(converted[0]) is int  # which CuPy takes for 64 bits
    assert [value.dtype.itemsize for value in converted[1:]] == [1, 2, 4, 8, 4, 8, 1]
    assert [int(value) for value in converted[1:5]] == [255, 2**16 - 1, 2**32 - 2, 2**40]
    assert converted[5].dtype == np.float32


@pytest.mark.parametrize(
    ("place", "value", "error", "said"),
    [
        (1, 256, OverflowError, "argument 2 of one is 256, which needs more than the 8 bits"),
        (3, 2**32, OverflowError, "more than the 32 bits"),
        (3, 1.7, TypeError, "argument 4 of one is 1.7, and the kernel takes a whole number"),
        (3, torch.ones(1), TypeError, "argument 4 of one is an array, and the kernel takes u32"),
        (5, torch.ones(2), TypeError, "argument 6 of one is an array, and the kernel takes f32"),
    ],
)
def test_what_does_not_fit_is_refused(place, value, error, said):
    with pytest.raises(error, match=said):
        converters()[place](value)


def test_a_struct_is_refused():
    with pytest.raises(TypeError, match="is a struct"):
        converters("two")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in names()],
)
def test_the_arguments_of_a_lesson_fit(name, monkeypatch):
    launched = []

    def load(text, file):
        convert = _converters(compile_kernel(text, "sm_90", file))

        def launch(blocks, arguments):
            assert len(arguments) == len(convert)
            launched.append([to(argument) for to, argument in zip(convert, arguments, strict=True)])

        return launch

    monkeypatch.setattr("lessons.load_on_cpu", lambda text, file, **_: load(text, file))
    for work in build(name).works.values():
        work.step()
    assert launched
