"""Batched GEMM: cuBLAS computes forty small products in one call, in two ways.

The lesson batched_matmul shows in PyTorch what one call for many small matrix products saves. Here
are the functions of cuBLAS below that, called from Python through CuPy, without PyTorch's
dispatcher. The products are the same, 32x256 by 256x256 in fp32 (GEMM is what BLAS calls a matrix
product). TF32 is off, which is the default of a cuBLAS handle.

`calls` calls cublasSgemm for each product. `gemm_batched` calls cublasSgemmBatched once. It takes
three arrays of pointers, so the matrices may lie anywhere, but the arrays themselves must be in
device memory. They are made once here; code that makes them in every step pays for three copies
from the host, which can cost more than the product. `gemm_strided_batched` takes three addresses
and the distance from each matrix to the next. It needs no arrays, but matrices at equal distances,
as in one tensor. torch.bmm uses it, and `bmm` is that, for scale.

Forty calls lose time in two ways: on the host, for each call, and on the device, where a product of
this size has work for a few SMs only, and the next one waits for it. Measured here on an H200: by
the device's clock `calls` takes 295 us and `gemm_batched` 12 us, 25x. That is what products gain
that run side by side: *SM %* rises from 2.5-4 to 33-46. With the host the two take 362 and 16 us in
one run, 534 and 23 us in another: 23x in both. No more than 40x, the number of products, is to be
expected. Between the two batched forms no difference was found (0.98x to 1.04x): both launch one
kernel for all products, and reading forty pointers is nothing beside the matrices. `bmm` takes 11
us by the device's clock, as they do, and 12 to 15 us with the host: here Python around the CuPy
call takes longer than PyTorch's dispatcher.

cuBLAS expects matrices by columns, and PyTorch has them by rows. A matrix by rows, read by columns,
is its transpose, and (a b)^T = b^T a^T: so b is passed first, with n and m exchanged, and nothing
needs to be transposed.

The test data of the performance basics made every output zero. Such a test cannot fail, and
measures something else: a GPU draws less power for zeros, and so has a higher clock (an H200 did
894 TFLOP/s on zeros in bf16 and 788 on random numbers, measured here). Here the data is random, and
all outputs are compared. What to look at: the speedup of each variant over the one above it, the
device's time beside that of the step, and *SM %*.
"""

import numpy as np
import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="CUDA C++ kernels",
    needs=("cuda", "cupy"),
    roof="matrix",
    params={"batch": 40, "m": 32, "k": 256, "n": 256},
    smoke={"batch": 8, "m": 3, "k": 17, "n": 5},
    sweep={"n": (16, 64, 256, 1024), "batch": (1, 4, 16, 40, 160)},
    ladder=True,
    item="product",
    claim="performance basics: 31x, with test data that made every output zero",
    no_effect_reason="both forms launch one kernel for all products",
    terms=("gemm", "cublas", "strided batched"),
)
N = 0  # CUBLAS_OP_N: the operand as it is, not transposed
_FACTORS = np.array([1, 0], np.float32)
# cuBLAS takes their addresses, on the host
ALPHA, BETA = _FACTORS.ctypes.data, _FACTORS[1:].ctypes.data


@scenario.variant
def calls(lab, batch, m, k, n):
    """cublasSgemm for each product."""
    a, b, c = _operands(lab, batch, m, k, n)
    places = [tuple(map(torch.Tensor.data_ptr, matrices)) for matrices in zip(a, b, c, strict=True)]
    arguments = [
        (N, N, n, m, k, ALPHA, b_at, n, a_at, k, BETA, c_at, n) for a_at, b_at, c_at in places
    ]
    return _work(_cublas("sgemm", arguments), a, b, c)


@scenario.variant
def gemm_batched(lab, batch, m, k, n):
    """cublasSgemmBatched: one call, with arrays of pointers in device memory."""
    a, b, c = _operands(lab, batch, m, k, n)
    arrays = [
        torch.tensor([matrix.data_ptr() for matrix in matrices], device=lab.device)
        for matrices in (a, b, c)
    ]
    a_at, b_at, c_at = map(torch.Tensor.data_ptr, arrays)
    step = _cublas("sgemmBatched", [(N, N, n, m, k, ALPHA, b_at, n, a_at, k, BETA, c_at, n, batch)])
    step.arrays = arrays  # cuBLAS reads them in every call, so they have to live as long
    return _work(step, a, b, c)


@scenario.variant
def gemm_strided_batched(lab, batch, m, k, n):
    """cublasSgemmStridedBatched: one call, with the distance from each matrix to the next."""
    a, b, c = _operands(lab, batch, m, k, n)
    a_at, b_at, c_at = map(torch.Tensor.data_ptr, (a, b, c))
    arguments = N, N, n, m, k, ALPHA, b_at, n, k * n, a_at, k, m * k, BETA, c_at, n, m * n, batch
    return _work(_cublas("sgemmStridedBatched", [arguments]), a, b, c)


@scenario.variant(against=None)
def bmm(lab, batch, m, k, n):
    """torch.bmm."""
    a, b, c = _operands(lab, batch, m, k, n)
    return _work(lambda: torch.bmm(a, b, out=c), a, b, c)


def _cublas(function, arguments_of_calls):
    import cupy  # only here, so that the file can be read without it

    index = torch.cuda.current_device()
    with cupy.cuda.Device(index):
        call, handle = getattr(cupy.cuda.cublas, function), cupy.cuda.get_cublas_handle()

    streams = {}  # making one takes longer than a call: CuPy 14 warns that its name will change

    def step():
        address = torch.cuda.current_stream().cuda_stream
        if address not in streams:
            streams[address] = cupy.cuda.ExternalStream(address, index)
        # In every call CuPy gives the handle its own current stream, so cublas.setStream would have
        # no effect.
        with cupy.cuda.Device(index), streams[address]:
            for arguments in arguments_of_calls:
                call(handle, *arguments)

    return step


def _operands(lab, batch, m, k, n):
    a, b = torch.randn(batch, m, k, device=lab.device), torch.randn(batch, k, n, device=lab.device)
    return a, b, torch.empty(batch, m, n, device=lab.device)


def _work(step, a, b, c):
    batch, m, k = a.shape
    return Work(
        step,
        flops=2 * batch * m * k * c.shape[2],
        bytes=a.nbytes + b.nbytes + c.nbytes,
        dtype="fp32",
        items=batch,
        inputs=(a, b),
        output=c,
    )
