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


def _pair(code, planted, twin, on):
    return Pair(code, Case(*planted), Case(*twin), on)


_GPU, _CPU = "findings/on_gpu", "findings/on_cpu"


def _planted(code, run, on):
    """A pair of a file of `planted`: a variant that is named after the finding, and its twin."""
    return _pair(code, (run, code), (run, f"{code}_twin"), on)


H200, H100, CPU, STAND_IN = "H200", "H100", "CPU", "stand-in driver"
PAIRS = (
    _pair(
        "data_wait", ("h200/input_pipeline", "workers_0"), ("h200/input_pipeline", "pinned"), H200
    ),
    _pair(
        "many_small_operations",
        ("h200/cuda_graphs", "eager"),
        ("small_kernels-h100-2", "eager"),
        f"{H200}, {H100}",
    ),
    _pair(
        "pageable_copies",
        ("h200/pinned_memory", "pageable"),
        ("h200/input_pipeline", "workers_n"),
        H200,
    ),
    _pair(
        "copies_not_overlapped",
        ("h200/double_buffering", "queued"),
        ("h200/double_buffering", "overlapped"),
        H200,
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
    ),
    _pair(
        "sectors_wasted", ("h200/coalescing", "stride_8"), ("h200/coalescing", "coalesced"), H200
    ),
    _pair(
        "low_occupancy", ("h200/occupancy", "starved"), ("h200/occupancy", "starved_8_loads"), H200
    ),
    _pair(
        "registers_spill",
        ("h200/launch_bounds", "eight_blocks"),
        ("h200/launch_bounds", "four_blocks"),
        H200,
    ),
    _pair(
        "fp32_products",
        ("h200/precision", "fp32"),
        ("findings/in_fp32", "fp32_products_twin"),
        f"{H200}, {H100}",
    ),
    _pair(
        "waits_empty_queue",
        ("findings/sync_every_step", "item_each"),
        ("findings/on_gpu", "waits_empty_queue_twin"),
        H100,
    ),
    _pair(
        "allocates_each_step",
        ("findings/preallocation", "cache_emptied"),
        ("findings/preallocation", "fresh"),
        H100,
    ),
    _pair(
        "clocks_held_back", ("standin-throttled", "naive"), ("standin-capped", "naive"), STAND_IN
    ),
    _planted("data_wait", _CPU, CPU),
    _planted("many_small_operations", _CPU, CPU),
    _planted("allocates_each_step", _CPU, CPU),
    _planted("not_fused", _CPU, CPU),
    _planted("optimizer_not_fused", _CPU, CPU),
    _planted("compiles_in_steps", "findings/compiled", CPU),
    _planted("waits_empty_queue", _GPU, H100),
    _planted("pageable_copies", _GPU, H100),
    _planted("allocates_each_step", _GPU, H100),
    _planted("many_small_operations", _GPU, H100),
    _planted("bank_conflicts", _GPU, H100),
    _planted("slow_product_kernel", _GPU, H100),
    _planted("tail_of_grid", _GPU, H100),
    _planted("compiles_in_steps", _GPU, H100),
    _planted("optimizer_not_fused", _GPU, H100),
)
