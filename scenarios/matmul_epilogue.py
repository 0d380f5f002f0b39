"""Matmul epilogue: torch.compile fuses what follows a matmul, but not into the matmul.

**In short:** by default the matmul stays a call of the library, and what follows it becomes one kernel: half the passes, not a quarter.

```text
            kernel                           passes over m x n
eager       x @ w ───────────────────▶ p       1
            p + bias ────────────────▶ q       2
            relu(q) ─────────────────▶ r       2
            r + residual ────────────▶ y       3      8 in all
compiled    x @ w ───────────────────▶ p       1
            relu(p+bias) + residual ─▶ y       3      4 in all
template    all of it ───────────────▶ y       2      2 in all
            a pass: the matrix is read once, or written once
```

| variant | what changes | expected (H200, one process, no interval) | why |
|---|---|---|---|
| `eager` | four operations | baseline, 511 us | eight passes over a matrix of the result's size |
| `compiled` | `torch.compile` with its defaults | faster, 283 us | the matmul by the library, then one fused kernel: four passes |
| `max_autotune` | templates are timed against the library | 283 us, as `compiled` | the fastest is kept; for large matrices often the library again |

## What an epilogue is

relu(x @ w + bias) + residual is a matrix product (matmul) and three element-wise operations on its
result, its *epilogue*. The best form is one kernel that adds bias and residual while the result is
still in registers. Then only the residual is read, and only the result is written.

## What the source says, and what is true

The torch.compile tutorial says that torch.compile makes that one kernel. By default it does not. A
matmul remains a call of cuBLAS or MKL. The compiler adds nothing to it here, though cuBLASLt has
epilogues of its own. (On a CPU the bias goes into the library's call, which takes one.)

`max-autotune` also generates matmuls of its own, Triton templates, which can include the epilogue.
The operations below the result show what ran. A kernel of the library and one `triton_poi_...` are
the default; a single `triton_tem_...` is a template.

## Where it does not help

    matmul: 2 * m * n * k FLOPs
    passes: m * n elements each, whatever k is

With a large k the matmul takes nearly all of the time, and all variants become the same
(`--sweep k`). On a CPU there are templates only for the frozen weights of a model in inference.
Here the weight is an argument, so `max_autotune` needs a GPU.

## What tuning costs

Seconds for every new shape, minutes for a large model: 21.7 s here for the first step on an H200,
1.5 s for `compiled`. The mode is `max-autotune-no-cudagraphs`, because `max-autotune` also replays
CUDA graphs, a second change.
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
    terms=("gemm", "fusion", "bias", "inductor", "max-autotune"),
)
_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


@scenario.variant
def eager(lab, m, n, k, dtype):
    """Four operations: the matmul writes its result, and three read and write it again."""
    return _work(lab, m, n, k, dtype, _layer, passes=8)


@scenario.variant(needs=("compiler",))
def compiled(lab, m, n, k, dtype):
    """`eager` by torch.compile with its defaults: the matmul by the library, then one fused pass."""
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
