"""Triton autotune: a new key times every configuration, a known one is looked up.

**In short:** the decorator takes what was fastest for the first call with a key, so name in `key` all that decides it.

```text
call            key                      what the decorator does
m=16    ───▶ (16, 4096, 4096)    ───▶ new: times 6 configurations
m=16    ───▶ (16, 4096, 4096)    ───▶ known: launches the fastest
m=4096  ───▶ (4096, 4096, 4096)  ───▶ new: times all 6 again

the same without m in the key
m=16    ───▶ (4096, 4096)        ───▶ new: times 6 configurations
m=4096  ───▶ (4096, 4096)        ───▶ known: the fastest of m=16
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `fixed` | tiles of 32 x 32, Triton's default warps and stages | baseline, 1.04 ms | few FLOPs for each byte that a tile loads |
| `missing_key` | `key=["n", "k"]`, and a first call with 16 rows | 2.8x | 16 rows want many small tiles, 4096 want large ones |
| `autotuned` | `key=["m", "n", "k"]` | 5.6x; 2.0x over `missing_key` | chosen at this size |
| `paired` | `gpulab.tune` chooses among the same six | the *same* as `autotuned` | the best few are measured in pairs |
| `cublas` | `torch.mm`, the library's product | 174 us, for scale | a kernel made for the device |

## What a call does

The key holds the values of the arguments named in `key`, and the dtypes of all tensors. For a new
key each configuration is compiled, or found on disk, and run: some 25 ms to warm up and 100 ms to
be timed. The L2 is emptied before each timed run, and the lowest median wins. Figures beside
`autotuned` are the seconds of such calls: the first, and one with another m. Later calls pay for a
look-up on the host, a figure too. The device's clock does not see it, but a launch-bound step does.

## Where it goes wrong

- A key without a size that matters keeps the choice of whatever came first.
- A key of a size that always changes tunes again in the middle of serving. Round such sizes up.
- A kernel that adds to its output runs many times while it is tuned: name that output in
  `reset_to_zero=` or `restore_value=`.
- A new process tunes again, unless `cache_results=True` or TRITON_CACHE_AUTOTUNING=1 keeps choices.

## Its choice against a paired final

The decorator times one configuration after the other, each once. Meanwhile the GPU lowers
its clock, and other work comes and goes. Among configurations a percent or two apart it may take
another one tomorrow. `gpulab.tune` measures in rounds, in random order, and the best few in pairs.
It says what the second best would cost.

## What the source says

The Triton guide decorates a kernel and leaves the choice to it. That is right, if the key is whole,
up to such a percent. In Triton's interpreter (TRITON_INTERPRET=1) the decorator fails, as there is
no GPU to time on. There, call `kernel.fn[grid](...)` with a configuration of your own.
"""

from functools import partial
from time import perf_counter

import torch

from gpulab import Scenario, Work, tune

try:
    import triton
    import triton.language as tl
except ImportError:  # the scenario says that it needs it
    triton = None

scenario = Scenario(
    topic="Triton, compilers, attention",
    needs=("cuda", "triton"),
    roof="matrix",
    clock="device",
    params={"m": 4096, "n": 4096, "k": 4096, "first": 16, "dtype": "bf16"},
    smoke={"m": 300, "n": 200, "k": 100},
    sweep={"m": (16, 256, 1024, 4096, 16384)},
    ladder=True,
    item="element",
    claim="Triton guide: @triton.autotune over block sizes, warps and stages, without a figure",
    no_effect_reason="configurations a percent apart are the same choice",
    terms=("triton.Config", "do_bench", "num_warps", "block size", "cache_results", "gemm"),
)
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_CONFIGS = [
    {"tile": tile, "warps": warps, "stages": stages}
    for tile, warps, stages in (
        ("128x256x64", 8, 3),
        ("128x128x64", 8, 4),
        ("128x128x64", 4, 3),
        ("64x128x64", 4, 4),
        ("64x64x64", 4, 4),
        ("32x64x64", 4, 4),
    )
]
_CALLS = 10


@scenario.variant
def fixed(lab, m, n, k, dtype):
    """Tiles of 32 x 32, Triton's default warps and stages, and no decorator."""
    work = _by_hand(*_matrices(lab, m, n, k, dtype), tile="32x32x32", warps=4, stages=3)
    lab.report("us of the host for a call", _host_us(work.step))
    return work


@scenario.variant
def missing_key(lab, m, n, k, first, dtype):
    """The decorator with a key that lacks m: it keeps the choice of a first call with few rows."""
    a, b, c = _matrices(lab, m, n, k, dtype)
    _launch(_without_m, a[:first], b, c[:first])
    work = _work(a, b, c, partial(_launch, _without_m, a, b, c))
    work.step()
    _report_tile(lab, _without_m.best_config)
    return work


@scenario.variant
def autotuned(lab, m, n, k, first, dtype):
    """The decorator with all sizes in its key: it chooses anew for this m."""
    a, b, c = _matrices(lab, m, n, k, dtype)
    if seconds := _tuning_s(a, b, c):
        lab.report("seconds of the first call", seconds)
    if seconds := _tuning_s(a[:first], b, c[:first]):
        lab.report("seconds of a new key", seconds)
    work = _work(a, b, c, partial(_launch, _product, a, b, c))
    lab.report("us of the host for a call", _host_us(work.step))
    _report_tile(lab, _product.best_config)
    return work


@scenario.variant
def paired(lab, m, n, k, dtype):
    """`gpulab.tune` over the same configurations, which ends in a final of pairs."""
    return tune(lab, _CONFIGS, partial(_by_hand, *_matrices(lab, m, n, k, dtype)))


@scenario.variant(against=None)
def cublas(lab, m, n, k, dtype):
    """torch.mm, which is cuBLAS."""
    a, b, c = _matrices(lab, m, n, k, dtype)
    return _work(a, b, c, lambda: torch.mm(a, b, out=c))


def _triton_config(tile, warps, stages):
    return triton.Config(_sizes(tile), num_warps=warps, num_stages=stages)


def _sizes(tile):
    return dict(zip("MNK", map(int, tile.split("x")), strict=True))


if triton is not None:

    @triton.autotune([_triton_config(**config) for config in _CONFIGS], key=["m", "n", "k"])
    @triton.jit
    def _product(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
        """One program computes M x N of c = a b, in steps of K."""
        across = tl.cdiv(n, N)
        top, side = tl.program_id(0) // across * M, tl.program_id(0) % across * N
        rows, columns, steps = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
        in_rows, in_columns = (top + rows < m)[:, None], (side + columns < n)[None, :]
        a += top.to(tl.int64) * k
        b += side
        of_a, of_b = rows[:, None] * k + steps[None, :], steps[:, None] * n + columns[None, :]
        sums = tl.zeros((M, N), dtype=tl.float32)
        for start in range(0, k, K):
            left = tl.load(a + of_a, mask=in_rows & (steps < k - start)[None, :], other=0.0)
            right = tl.load(b + of_b, mask=in_columns & (steps < k - start)[:, None], other=0.0)
            sums = tl.dot(left, right, sums)
            a += K
            b += K * tl.cast(n, tl.int64)
        c += top.to(tl.int64) * n + side
        tl.store(
            c + rows[:, None] * n + columns[None, :],
            sums.to(c.dtype.element_ty),
            mask=in_rows & in_columns,
        )

    _plain = _product.fn
    """The kernel without the decorator."""
    _without_m = triton.autotune(_product.configs, key=["n", "k"])(_plain)


def _launch(kernel, a, b, c, **config):
    """The configuration is given, or chosen by the decorator."""
    (m, k), n = a.shape, b.shape[1]

    def programs(chosen):
        return (triton.cdiv(m, chosen["M"]) * triton.cdiv(n, chosen["N"]),)

    kernel[programs](a, b, c, m, n, k, **config)


def _by_hand(a, b, c, tile, warps, stages):
    config = {**_sizes(tile), "num_warps": warps, "num_stages": stages}
    return _work(a, b, c, partial(_launch, _plain, a, b, c, **config))


def _tuning_s(a, b, c):
    """How long a call takes, if its key is new in this process."""
    known = len(_product.cache)
    start = perf_counter()
    _launch(_product, a, b, c)
    taken = perf_counter() - start
    return taken if len(_product.cache) > known else None


def _host_us(call):
    """How soon a call returns, of several that do not wait for the device."""
    call()
    start = perf_counter()
    for _ in range(_CALLS):
        call()
    return (perf_counter() - start) / _CALLS * 1e6


def _report_tile(lab, config):
    lab.report("rows of a tile", config.kwargs["M"])
    lab.report("columns of a tile", config.kwargs["N"])


def _matrices(lab, m, n, k, dtype):
    shapes = (m, k), (k, n), (m, n)
    return [
        torch.randn(rows, columns, device=lab.device, dtype=_DTYPES[dtype])
        for rows, columns in shapes
    ]


def _work(a, b, c, multiply):
    (m, k), n = a.shape, b.shape[1]
    size, dtype = a.nbytes + b.nbytes + c.nbytes, "bf16" if a.dtype == torch.bfloat16 else "fp16"
    return Work(
        multiply, flops=2 * m * n * k, bytes=size, dtype=dtype, items=m * n, inputs=(a, b), output=c
    )
