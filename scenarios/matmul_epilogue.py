"""Matmul epilogue: torch.compile fuses what follows a matmul, but not into the matmul.

relu(x @ w + bias) + residual is a matrix product (matmul) and three element-wise operations on its
result, its *epilogue*. In eager mode these are four kernels: the matmul writes its result to
memory, and each of the others reads and writes all of it again, eight passes over a matrix of that
size. The best form is one kernel that adds bias and residual while the result is still in
registers: two passes, since only the residual is read and only the result is written.

The torch.compile tutorial says that torch.compile does this. By default it does not. A matmul
remains a call of the library, cuBLAS or MKL, and the compiler adds nothing to it here, though
cuBLASLt has epilogues of its own. It fuses the operations after it into one pass over the result:
two kernels and four passes. (On a CPU the bias goes into the library call, which takes one.)
`max-autotune` also generates matmuls of its own, Triton templates on a GPU, which can include the
epilogue. It times them against the library for these shapes and keeps the fastest, which for large
matrices often is the library again. On a GPU the operations below the result show what ran: a
kernel of the library and one `triton_poi_...`, or a single `triton_tem_...`, a template.

The gain is memory traffic, and how much it matters depends on the inner dimension k: the matmul
does 2 m n k FLOPs, while the passes over its result do not depend on k. With a large k all variants
become the same. On a CPU the compiler has templates only for the frozen weights of a model in
inference. Here the weight is an argument, so there is nothing to tune, and `max_autotune` needs a
GPU.

The mode here is `max-autotune-no-cudagraphs`, because `max-autotune` also replays CUDA graphs,
which would be a second change. Tuning takes seconds for every new shape, and minutes for a large
model.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="compute",
    roof="matrix",
    clock="device",
    params={"m": 8192, "n": 8192, "k": 1024, "dtype": "bf16"},
    cpu={"m": 1024, "n": 1024, "k": 64, "dtype": "fp32"},
    smoke={"m": 64, "n": 64, "k": 16},
    sweep={"k": (64, 256, 1024, 4096)},
    ladder=True,
    item="element",
    no_effect_reason="the same kernels run before and after, or the matmul takes nearly all of the time",
    claim="torch.compile tutorial: torch.compile fuses the matmul, bias, ReLU and add",
    terms=("gemm", "epilogue fusion", "bias"),
)
_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


@scenario.variant
def eager(lab, m, n, k, dtype):
    """Four operations: the matmul writes its result, and three read and write it again."""
    return _work(lab, m, n, k, dtype, _layer, passes=8)


@scenario.variant(needs=("compiler",))
def compiled(lab, m, n, k, dtype):
    """torch.compile with its defaults: the matmul by the library, then one fused pass."""
    return _work(lab, m, n, k, dtype, torch.compile(_layer), passes=4)


@scenario.variant(needs=("cuda", "compiler"))
def max_autotune(lab, m, n, k, dtype):
    """Matmuls that the compiler generates, with the epilogue inside, where they are faster than the
    library.
    """
    layer = torch.compile(_layer, mode="max-autotune-no-cudagraphs")
    return _work(lab, m, n, k, dtype, layer, passes=2)  # at least


def _layer(rows, weight, bias, residual):
    return torch.relu(rows @ weight + bias) + residual


def _work(lab, m, n, k, dtype, layer, passes):
    to = {"device": lab.device, "dtype": _DTYPES[dtype]}
    rows, residual, bias = torch.randn(m, k, **to), torch.randn(m, n, **to), torch.randn(n, **to)
    weight = torch.randn(k, n, **to) / k**0.5

    def step():
        with lab.useful():
            return layer(rows, weight, bias, residual)

    return Work(
        step,
        flops=2 * m * n * k + 3 * m * n,
        bytes=rows.nbytes + weight.nbytes + passes * residual.nbytes,
        dtype=dtype,
        items=m * n,
        inputs=(rows, weight, bias, residual),
    )
