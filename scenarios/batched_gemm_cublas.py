"""Batched GEMM: cuBLAS computes forty small products in one call, in two ways.

**In short:** one batched call lets forty small products run side by side; whether it takes pointers or a distance makes no difference.

```text
                       the call gets           on the device
calls                  a1 b1 c1 ─▶ a2 ...      █ █ █ █ ... 40 in turn
                       40 times

gemm_batched           [·a1 ·a2 ... ·a40]      █ 1 kernel:
                       [·b1 ·b2 ... ·b40]      █ all 40 products
                       [·c1 ·c2 ... ·c40]      █ side by side

gemm_strided_batched   a1, b1, c1 and the      █ the same
                       distance to the next
```

| variant | what changes | expected (H200: device; with the host) | why |
|---|---|---|---|
| `calls` | cublasSgemm for each product | baseline, 295 us; 362 to 534 us | each product has work for a few SMs; the next one waits |
| `gemm_batched` | one call, with arrays of pointers | 12 us, 25x; 16 to 23 us, 23x | one kernel for all products |
| `gemm_strided_batched` | one call, with the distance to the next matrix | 0.98x to 1.04x of `gemm_batched`: *same* | the same kernel work; reading forty pointers is nothing beside the matrices |
| `bmm` | `torch.bmm`, for scale | 11 us; 12 to 15 us | the strided form; CuPy's call costs more Python than PyTorch's dispatcher |

## Two ways to lose time

A GEMM is a matrix product, here 32x256 by 256x256 in fp32 (TF32 is off, the default of a cuBLAS
handle). Forty calls lose time on the host, for each call, and on the device, where products run one
after the other. By the device's clock only the second counts: *SM %* rises from 2.5-4 to 33-46
(H200). The gain is at most the number of products:

    speedup <= 40

`batched_matmul` shows the same in PyTorch. Here cuBLAS is called from Python through CuPy.

## Pointers or a distance

- Pointers (cublasSgemmBatched): the matrices may lie anywhere, but the three arrays must be in
  device memory. Here they are made once. Code that makes them in every step pays for three copies
  from the host, which can cost more than the product.
- Distance (cublasSgemmStridedBatched): no arrays, but the matrices must lie at equal distances, as
  in one tensor.

## Rows and columns

cuBLAS expects matrices by columns, PyTorch has them by rows. Read by columns, a matrix by rows is
its transpose, and

    (a b)^T = b^T a^T

So b is passed first, with n and m exchanged, and nothing is transposed.

## What the source says

The performance basics name 31x, with test data that made every output zero. Such a test cannot
fail, and measures something else. For zeros a GPU draws less power, so its clock is higher: an H200
did 894 TFLOP/s on zeros in bf16, and 788 on random numbers (our own measurement). Here the data is
random, and all outputs are compared.
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
    terms=("matmul", "bmm", "cublas", "strided batched", "cupy"),
)
N = 0  # CUBLAS_OP_N: the operand as it is, not transposed
_FACTORS = np.array([1, 0], np.float32)
# cuBLAS takes their addresses, on the host
ALPHA, BETA = _FACTORS.ctypes.data, _FACTORS[1:].ctypes.data


@scenario.variant
def calls(lab, batch, m, k, n):
    """cublasSgemm for each product: forty calls, forty kernels."""
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
    """torch.bmm, for scale: the strided form, called by PyTorch."""
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
