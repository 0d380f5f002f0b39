"""Planted bottlenecks and their twins in recorded runs: for each rule, where its case is and what
differs from it in one thing.
"""

from typing import NamedTuple


class Case(NamedTuple):
    """A variant of a recorded run."""

    run: str
    variant: str


class Pair(NamedTuple):
    code: str
    planted: Case
    twin: Case
    on: str
    """What it was recorded on."""
    fix: Case | None = None
    """Where the same work was measured without the bottleneck."""


def _pair(code, planted, twin, on, fix=None):
    """`fix` is a variant of the run of the planted one."""
    fixed = Case(planted[0], fix) if fix else None
    return Pair(code, Case(*planted), Case(*twin), on, fixed)


_GPU, _CPU = "findings/on_gpu", "findings/on_cpu"


def _planted(code, run, on, *, same_work=False):
    """A pair of a file of `planted`: a variant that is named after the finding, and its twin, which
    may do the same work.
    """
    twin = f"{code}_twin"
    return _pair(code, (run, code), (run, twin), on, twin if same_work else None)


H200, H100, CPU, STAND_IN = "H200", "H100", "CPU", "stand-in driver"
PAIRS = (
    _pair(
        "data_wait",
        ("h200/input_pipeline", "workers_0"),
        ("h200/input_pipeline", "pinned"),
        H200,
        fix="pinned",
    ),
    _pair(
        "many_small_operations",
        ("h200/cuda_graphs", "eager"),
        ("h100/small_kernels", "eager"),
        f"{H200}, {H100}",
        fix="graphed",
    ),
    _pair(
        "pageable_copies",
        ("h200/pinned_memory", "pageable"),
        ("h200/input_pipeline", "workers_n"),
        H200,
        fix="pinned",
    ),
    _pair(
        "copies_not_overlapped",
        ("h200/double_buffering", "queued"),
        ("h200/double_buffering", "overlapped"),
        H200,
        fix="overlapped",
    ),
    _pair(
        "nothing_to_gain",
        ("h200/vectorized_loads", "one_float4"),
        ("h200/vectorized_loads", "one_float"),
        H200,
    ),
    _pair(
        "not_fused",
        ("h200/layernorm_gelu", "eager"),
        ("h200/layernorm_gelu", "compiled"),
        H200,
        fix="in_triton",
    ),
    _pair(
        "sectors_wasted",
        ("h200/coalescing", "stride_8"),
        ("h200/coalescing", "coalesced"),
        H200,
        fix="coalesced",
    ),
    _pair(
        "low_occupancy",
        ("h200/occupancy", "starved"),
        ("h200/occupancy", "starved_8_loads"),
        H200,
        fix="balanced",
    ),
    _pair(
        "registers_spill",
        ("h200/launch_bounds", "eight_blocks"),
        ("h200/launch_bounds", "four_blocks"),
        H200,
        fix="four_blocks",
    ),
    _pair(
        "fp32_products",
        ("h200/precision", "fp32"),
        ("findings/in_fp32", "fp32_products_twin"),
        f"{H200}, {H100}",
        fix="tf32",
    ),
    _pair(
        "waits_empty_queue",
        ("findings/sync_every_step", "item_each"),
        ("findings/on_gpu", "waits_empty_queue_twin"),
        H100,
        fix="deferred",
    ),
    _pair(
        "allocates_each_step",
        ("findings/preallocation", "cache_emptied"),
        ("findings/preallocation", "fresh"),
        H100,
        fix="fresh",
    ),
    _pair(
        "clocks_held_back", ("standin-throttled", "naive"), ("standin-capped", "naive"), STAND_IN
    ),
    _planted("data_wait", _CPU, CPU),
    _planted("many_small_operations", _CPU, CPU),
    _planted("allocates_each_step", _CPU, CPU, same_work=True),
    _planted("not_fused", _CPU, CPU),
    _planted("optimizer_not_fused", _CPU, CPU, same_work=True),
    _planted("compiles_in_steps", "findings/compiled", CPU, same_work=True),
    _planted("loading_too_slow", "findings/loaders", CPU),
    _planted("waits_empty_queue", _GPU, H100),
    _planted("pageable_copies", _GPU, H100),
    _planted("allocates_each_step", _GPU, H100, same_work=True),
    _planted("many_small_operations", _GPU, H100),
    _planted("bank_conflicts", _GPU, H100, same_work=True),
    _planted("slow_product_kernel", _GPU, H100, same_work=True),
    _planted("tail_of_grid", _GPU, H100),
    _planted("compiles_in_steps", _GPU, H100, same_work=True),
    _planted("optimizer_not_fused", _GPU, H100, same_work=True),
)
