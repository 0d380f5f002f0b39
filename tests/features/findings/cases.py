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


def _pair(code, planted, twin):
    return Pair(code, Case(*planted), Case(*twin))


_GPU, _CPU = "findings/on_gpu", "findings/on_cpu"


def _planted(code, run):
    """A pair of a file of `planted`: a variant that is named after the finding, and its twin."""
    return _pair(code, (run, code), (run, f"{code}_twin"))


PAIRS = (
    _pair("data_wait", ("h200/input_pipeline", "workers_0"), ("h200/input_pipeline", "pinned")),
    _pair("many_small_operations", ("h200/cuda_graphs", "eager"), ("h100/small_kernels", "eager")),
    _pair(
        "pageable_copies", ("h200/pinned_memory", "pageable"), ("h200/input_pipeline", "workers_n")
    ),
    _pair(
        "copies_not_overlapped",
        ("h200/double_buffering", "queued"),
        ("h200/double_buffering", "overlapped"),
    ),
    _pair("not_fused", ("h200/layernorm_gelu", "eager"), ("h200/layernorm_gelu", "compiled")),
    _pair("sectors_wasted", ("h200/coalescing", "stride_8"), ("h200/coalescing", "coalesced")),
    _pair("low_occupancy", ("h200/occupancy", "starved"), ("h200/occupancy", "starved_8_loads")),
    _pair(
        "registers_spill",
        ("h200/launch_bounds", "eight_blocks"),
        ("h200/launch_bounds", "four_blocks"),
    ),
    _pair("fp32_products", ("h200/precision", "fp32"), ("findings/in_fp32", "fp32_products_twin")),
    _pair(
        "waits_empty_queue",
        ("findings/sync_every_step", "item_each"),
        ("findings/on_gpu", "waits_empty_queue_twin"),
    ),
    _pair(
        "allocates_each_step",
        ("findings/preallocation", "cache_emptied"),
        ("findings/preallocation", "fresh"),
    ),
    _pair("clocks_held_back", ("standin-throttled", "naive"), ("standin-capped", "naive")),
    _planted("data_wait", _CPU),
    _planted("many_small_operations", _CPU),
    _planted("allocates_each_step", _CPU),
    _planted("not_fused", _CPU),
    _planted("optimizer_not_fused", _CPU),
    _planted("compiles_in_steps", "findings/compiled"),
    _planted("waits_empty_queue", _GPU),
    _planted("pageable_copies", _GPU),
    _planted("many_small_operations", _GPU),
    _planted("bank_conflicts", _GPU),
    _planted("slow_product_kernel", _GPU),
    _planted("tail_of_grid", _GPU),
    _planted("compiles_in_steps", _GPU),
    _planted("optimizer_not_fused", _GPU),
)
