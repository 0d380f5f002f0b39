"""The calls of cuBLAS in a lesson multiply what they should: a stand-in reads column-major matrices
as cuBLAS does.
"""

import ctypes
import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from lessons import build, output

COUNTED = []


def matrix(address, rows, columns, leading):
    """Of that many rows, stored column by column, `leading` floats from one to the next."""
    assert leading >= max(1, rows)
    floats = (ctypes.c_float * (leading * columns)).from_address(address)
    return np.frombuffer(floats, np.float32).reshape(columns, leading).T[:rows]


def number(address):
    return ctypes.c_float.from_address(address).value


def multiply(transposed, m, n, k, alpha, a, a_leading, b, b_leading, beta, c, c_leading):
    assert transposed == (0, 0)
    assert (number(alpha), number(beta)) == (1, 0)
    matrix(c, m, n, c_leading)[:] = matrix(a, m, k, a_leading) @ matrix(b, k, n, b_leading)


def sgemm(handle, a_as, b_as, m, n, k, alpha, a, a_leading, b, b_leading, beta, c, c_leading):
    COUNTED.append("sgemm")
    multiply((a_as, b_as), m, n, k, alpha, a, a_leading, b, b_leading, beta, c, c_leading)


def sgemm_batched(
    handle, a_as, b_as, m, n, k, alpha, a, a_leading, b, b_leading, beta, c, c_leading, count
):
    COUNTED.append("sgemmBatched")
    pointers = ((ctypes.c_void_p * count).from_address(address) for address in (a, b, c))
    for a_at, b_at, c_at in zip(*pointers, strict=True):
        multiply(
            (a_as, b_as), m, n, k, alpha, a_at, a_leading, b_at, b_leading, beta, c_at, c_leading
        )


def sgemm_strided_batched(
    handle,
    a_as,
    b_as,
    m,
    n,
    k,
    alpha,
    a,
    a_leading,
    a_far,
    b,
    b_leading,
    b_far,
    beta,
    c,
    c_leading,
    c_far,
    count,
):
    COUNTED.append("sgemmStridedBatched")
    for i in range(count):
        a_at, b_at, c_at = a + 4 * i * a_far, b + 4 * i * b_far, c + 4 * i * c_far
        multiply(
            (a_as, b_as), m, n, k, alpha, a_at, a_leading, b_at, b_leading, beta, c_at, c_leading
        )


@pytest.fixture
def _cublas(monkeypatch):
    functions = {
        "sgemm": sgemm,
        "sgemmBatched": sgemm_batched,
        "sgemmStridedBatched": sgemm_strided_batched,
    }
    cupy = ModuleType("cupy")
    cupy.cuda = SimpleNamespace(
        cublas=SimpleNamespace(**functions),
        get_cublas_handle=lambda: 1,
        Device=lambda index: nullcontext(),
        ExternalStream=lambda *stream: nullcontext(),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda *index: SimpleNamespace(cuda_stream=0))
    COUNTED.clear()


@pytest.mark.usefixtures("_cublas")
@pytest.mark.parametrize(
    "sizes",
    [{"batch": 1, "m": 1, "k": 1, "n": 1}, {"batch": 3, "m": 5, "k": 7, "n": 2}, {}],
    ids=["ones", "odd", "smoke"],
)
def test_every_form_multiplies_each_pair(sizes):
    built = build("batched_gemm_cublas", **sizes)
    batch = built.params["batch"]
    for name, work in built.works.items():
        a, b = (operand.double() for operand in work.inputs)
        (values,) = output(work)
        assert values.shape == (batch, built.params["m"], built.params["n"])
        assert torch.allclose(values.double(), a @ b, rtol=1e-5, atol=1e-5), name
        assert work.flops == 2 * batch * a.shape[1] * a.shape[2] * b.shape[2]
        assert work.items == batch
    assert list(built.works) == ["calls", "gemm_batched", "gemm_strided_batched", "bmm"]
    # Each step ran twice.
    expected = ["sgemm"] * 2 * batch + ["sgemmBatched"] * 2 + ["sgemmStridedBatched"] * 2
    assert expected == COUNTED
