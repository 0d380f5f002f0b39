"""Compile modes: default compiles fastest; the other modes may gain more per step.

**In short:** each mode does what the one before does and something more, so it compiles longer, and only some steps gain by that.

```text
                    first calls: compile ─────────▶     each later step

default             ▒▒▒▒ fuse                           ▸█ ▸█ ▸█ ▸█
reduce_overhead     ▒▒▒▒ fuse  ▒ warm up  ▒ record      ▸█████
max_autotune        ▒▒▒▒ fuse  ▒▒▒▒▒▒▒▒ time kernels
                               ▒ warm up  ▒ record      ▸████

      ▒ once     ▸ a launch by the host     █ a kernel     not to scale
```

| variant | what changes | expected (on a GPU) | why |
|---|---|---|---|
| `eager` | no compiler | baseline | every operation is a call and a kernel, nine for each block |
| `default` | fused kernels | faster; least time to compile | element-wise operations and reductions fused; matmuls stay with the library |
| `reduce_overhead` | the same kernels, as a CUDA graph | gains most of kernels that are short; compiles longer than `default` | one launch replays all |
| `max_autotune` | tuned matmuls, as a CUDA graph | compiles longest by far | dozens of kernels are compiled and timed for each shape of a matmul |

No factor stands here: this lesson has no recorded run of a GPU yet. On a CPU the last two are
skipped.

## What the modes do

A matmul is a matrix product. `default` fuses what lies around matmuls. `reduce-overhead` records
the launches of a call once in a CUDA graph, and replays them with one launch. `max-autotune`
replays too. For each matmul it times generated kernels against the library's, and keeps the
fastest.

## What the source says

The torch.compile tutorial says that `reduce-overhead` compiles fastest. That is wrong: it does all
that `default` does, then one warm-up run, then the recording.

The figure *compile seconds* is the time of the first three calls, with an empty cache on disk and
the compiler already loaded. Each mode has a cache of its own. It shortens later starts with the
same code: here those of all processes but the first.

## Which one pays

    steps until it has paid = compile seconds / seconds saved per step

- `reduce-overhead` gains where the device waits for launches, nothing where kernels are long. It
  needs fixed shapes, keeps memory for the graph, and copies inputs into its own buffers. The next
  call overwrites its output: clone what has to be kept.
- `max-autotune` gains where the library is slow for a shape, or where a matmul can take in the
  operations after it.

## On a CPU

There are no graphs, and `max-autotune` has matmuls of its own only for frozen weights. It makes the
kernels of `default`. It leaves out the guards on input shapes (checks that they are those of the
compilation), which take some microseconds a call. So both need CUDA here.
"""

import os
from functools import cache
from pathlib import Path
from time import perf_counter

import torch

from gpulab import Scenario, Work

scenario = Scenario(
    topic="Triton, compilers, attention",
    params={"batch": 128, "width": 1024, "layers": 2, "dtype": "bf16"},
    cpu={"batch": 64, "width": 128, "layers": 2, "dtype": "fp32"},
    smoke={"batch": 4, "width": 16, "layers": 2},
    sweep={"batch": (16, 128, 1024, 8192)},
    ladder=True,
    item="row",
    no_effect_reason="matmuls take nearly all of the time, and the library's are as fast as generated ones",
    env={
        "TORCHINDUCTOR_CACHE_DIR": "{folder}",
        # else it compiles test programs, to see what the CPU can do
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
    },
    claim="torch.compile tutorial: reduce-overhead compiles fastest",
    terms=("torch.compile", "max-autotune", "reduce-overhead", "inductor", "cuda graph"),
)
_CACHES = Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR", ""))
_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
_CALLS = 3


@scenario.variant
def eager(lab, batch, width, layers, dtype):
    """No compiler: every operation is a call and a kernel."""
    return _work(lab, batch, width, layers, dtype, None)


@scenario.variant(needs=("compiler",))
def default(lab, batch, width, layers, dtype):
    """torch.compile(model): fused kernels in place of single operations, without graphs or tuning."""
    return _work(lab, batch, width, layers, dtype, "default")


@scenario.variant(needs=("cuda", "compiler"))
def reduce_overhead(lab, batch, width, layers, dtype):
    """mode="reduce-overhead": the kernels of `default`, replayed as a CUDA graph."""
    return _work(lab, batch, width, layers, dtype, "reduce-overhead")


@scenario.variant(needs=("cuda", "compiler"))
def max_autotune(lab, batch, width, layers, dtype):
    """mode="max-autotune": the fastest kernel for each matmul, replayed as a CUDA graph."""
    return _work(lab, batch, width, layers, dtype, "max-autotune")


def _work(lab, batch, width, layers, dtype, mode):
    to = {"device": lab.device, "dtype": _DTYPES[dtype]}
    blocks = [_Block(width) for _ in range(layers)]
    model = torch.nn.Sequential(*blocks).to(**to).requires_grad_(False)
    rows = torch.randn(batch, width, **to)
    if mode is None:
        forward = model
    else:
        folder = _CACHES / mode
        is_cold = not folder.exists()
        if is_cold:
            _load_compiler(lab.device)
        _keep_kernels_in(folder)
        forward = torch.compile(model, mode=mode)
        seconds = _seconds_of_first_calls(lab, lambda: forward(rows))
        if is_cold:
            lab.report("compile seconds", seconds)

    def step():
        with lab.useful():
            return forward(rows)

    weights = layers * width**2
    return Work(
        step,
        flops=2 * batch * weights,
        dtype=dtype,
        items=batch,
        inputs=(rows, list(model.parameters())),
    )


class _Block(torch.nn.Module):
    """RMS norm written out, a matmul, SiLU, and the residual: nine operations in eager mode."""

    def __init__(self, width):
        super().__init__()
        self.scale, self.linear = (
            torch.nn.Parameter(torch.ones(width)),
            torch.nn.Linear(width, width, bias=False),
        )

    def forward(self, rows):
        normalized = (
            rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-5) * self.scale
        )
        return rows + torch.nn.functional.silu(self.linear(normalized))


@cache
def _load_compiler(device):
    """Compile a small block first: loading the compiler takes seconds, which belong to none of the
    modes.
    """
    torch.compile(_Block(16).to(device).requires_grad_(False))(torch.ones(4, 16, device=device))


def _keep_kernels_in(folder):
    """Have those of one mode in a folder of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
    os.environ.pop("TRITON_CACHE_DIR", None)  # the compiler derives it from the other one, once


def _seconds_of_first_calls(lab, call):
    started = perf_counter()
    for _ in range(_CALLS):
        call()
    if lab.device.type == "cuda":
        torch.cuda.synchronize(lab.device)
    return perf_counter() - started
