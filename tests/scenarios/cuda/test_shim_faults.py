"""The shim finds what is an error on a GPU: kernels whose faults are known."""

from functools import partial

import pytest
import torch
from shim import AVAILABLE, KernelError

from gpulab.features.kernels.source import CudaSource

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="no g++, or no Linux")
CUDA = CudaSource(r"""
__global__ void sum_to(const float* x, float* y, int first, int last) {
    float sum = 0;
    for (int i = first; i < last; i++) sum += x[i];
    y[0] = sum;
}
__global__ void some(float* x) {
    if (threadIdx.x < 16) __syncthreads();
    x[threadIdx.x] = 1;
}
__global__ void different(float* x) {
    if (threadIdx.x < 16) __syncthreads();
    else
        __syncthreads();
}
__global__ void returns(float* x, int n) {
    if (threadIdx.x >= n) return;
    __syncthreads();
}
__global__ void half_warp(float* x) {
    if (threadIdx.x < 16) x[0] = __shfl_sync(0xffffffff, x[0], 0);
    else
        __syncthreads();
}
__global__ void not_in_mask(float* x) { x[0] = __shfl_sync(0x1, x[0], 0); }
__global__ void index(float* x, int by) {
    __shared__ float four[4];
    const int at = threadIdx.x + by;
    four[at] = 1;
    x[threadIdx.x] = four[threadIdx.x];
}
__global__ void dynamic(float* x, int by) {
    extern __shared__ float four[];
    four[threadIdx.x + by] = 1;
}
__global__ void spins(volatile int* x, int apart) {
    while (x[0] != (int)gridDim.x) {
        if (apart) __syncthreads();
    }
}
__global__ void deep(float* x, int by) {
    volatile float mine[1 << 18];
    for (int i = 0; i < by; i++) mine[i] = i;
}
""")
EITHER_WAY = pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])


@pytest.fixture
def make(load):
    return partial(load, CUDA)


def line_of(code):
    """Where that stands in this file, as the errors say it."""
    return CUDA.line + CUDA.code[: CUDA.code.index(code)].count("\n")


def test_what_lies_beside_a_tensor_is_no_number(make):
    x, y = torch.ones(5), torch.zeros(1)
    launch = make("sum_to", 1)
    launch(1, x, y, 0, 5)
    assert y.item() == 5
    for first, last in ((-1, 5), (0, 6)):
        launch(1, x, y, first, last)
        assert y.isnan().all()
    for first, last, where in ((0, 9, "behind"), (-4000, 5, "before")):
        with pytest.raises(
            KernelError,
            match=rf"thread \(0, 0, 0\) of block .* bytes {where} the tensor.* of argument 1",
        ):
            launch(1, x, y, first, last)
    # a view: what is before it is the tensor's as well
    assert make("sum_to", 1)(1, x[2:], y, -2, 3) is None
    assert y.item() == 5


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        (
            "some",
            (),
            r"thread \(16, 0, 0\) of block \(0, 0, 0\) ends without the __syncthreads of line {some}",
        ),
        (
            "different",
            (),
            r"thread \(16, 0, 0\) .* line {other}, and others at that of line {different}",
        ),
        ("returns", (20,), r"thread \(20, 0, 0\) .* ends without the __syncthreads"),
        (
            "half_warp",
            (),
            r"thread \(0, 0, 0\) .* lanes 0xffffffff of its warp, which never all come",
        ),
        ("not_in_mask", (), r"thread \(1, 0, 0\) .* is not in the mask 0x1"),
        ("index", (-29,), r"element -29 of an array of 'float \[4\]'"),
        ("index", (1,), r"element 4 of an array of 'float \[4\]'"),
        ("dynamic", (1,), r"reads or writes where no memory is, near its shared memory"),
        ("deep", (9,), r"reads or writes where no memory is"),
    ],
)
@EITHER_WAY
def test_what_would_fail_on_a_gpu_is_said(make, name, arguments, said, backward):
    lines = {
        "some": "if (threadIdx.x < 16) __syncthreads();\n    x[",
        "different": "if (threadIdx.x < 16) __syncthreads();\n    else",
    }
    lines = {key: line_of(code) for key, code in lines.items()} | {
        "other": line_of("        __syncthreads();\n}\n__global__ void returns")
    }
    if backward:
        said = r"(thread|element)"
    x = torch.zeros(32)
    with pytest.raises(KernelError, match=said.format(**lines) if "{" in said else said):
        make(name, 32, backward, shared_bytes=128)(1, x, *arguments)
    y = torch.zeros(1)
    make("sum_to", 1)(1, torch.ones(32), y, 0, 32)  # the next kernel runs as if nothing had been
    assert y.item() == 32


@pytest.mark.parametrize("apart", [0, 1])
def test_a_kernel_that_does_not_end_is_ended(make, apart):
    with pytest.raises(KernelError, match=r"is still running after 0.2 s"):
        make("spins", 32, limit_s=0.2)(1, torch.zeros(1, dtype=torch.int32), apart)
    y = torch.zeros(1)
    make("sum_to", 1)(1, torch.ones(32), y, 0, 32)
    assert y.item() == 32
