"""What the rules find, in words. Shares are of the step."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding
from gpulab.core.units import plural


@finding(rank=Rank.EXPLAINING)
def data_wait(*, share: float, workers: int | None = None) -> str:
    by = f", with {plural(workers, 'worker process', 'worker processes')}" if workers else ""
    return f"waits for its data {share:.0%} of the step{by}"


_OF_DEVICE = ""
"""The line of operations that a device runs; of a CPU's it is None where none stands out."""


@finding(rank=Rank.EXPLAINING)
def many_small_operations(
    *, share: float, operations: float | None, line: str | None = _OF_DEVICE
) -> str:
    started = "operations" if operations is None else plural(round(operations), "operation")
    most = f", most of them at {line}" if line else ""
    whole = "the step" if line == _OF_DEVICE else "the time that the thread runs"
    return f"starting {started} takes {share:.0%} of {whole}{most}"


@finding(
    "{waits:.0f} host-device synchronizations a step block the host for {share:.0%} of it, and the "
    "device is idle for {idle:.0%}",
    rank=Rank.EXPLAINING,
)
def waits_empty_queue(*, share: float, waits: float, idle: float) -> None: ...
@finding(
    "copies of pageable memory take {share:.0%} of the step, and nothing runs meanwhile",
    rank=Rank.EXPLAINING,
)
def pageable_copies(*, share: float) -> None: ...
@finding(
    "copies take {share:.0%} of the step, and no kernel runs meanwhile ({hidden:.0%} overlaps)",
    rank=Rank.EXPLAINING,
)
def copies_not_overlapped(*, share: float, hidden: float) -> None: ...


@finding(rank=Rank.EXPLAINING)
def allocates_each_step(*, share: float, calls: float | None, faults: float | None) -> str:
    if faults is not None:
        of = f"{share:.0%} of the time that the thread runs"
        return f"{faults:,.0f} page faults of fresh memory take {of}"
    called = "" if calls is None else f" ({calls:.0f} calls)"
    return f"the driver allocates and frees memory in every step{called}: {share:.0%} of it"


@finding(
    "{operations:.0f} pointwise operations take {share:.0%} of the step; their operands are "
    "{ratio:.1f}x the bytes of one",
    rank=Rank.EXPLAINING,
)
def not_fused(*, operations: float, ratio: float, share: float) -> None: ...
@finding(
    "kernel {kernel} ({of_step:.0%} of the step) uses {use:.0%} of the memory sectors that its "
    "warps {access}",
    rank=Rank.EXPLAINING,
)
def sectors_wasted(*, kernel: str, of_step: float, use: float, access: str) -> None: ...
@finding(
    "kernel {kernel} ({of_step:.0%} of the step): {ways}-way bank conflicts in shared memory, "
    "{share:.0%} of its accesses",
    rank=Rank.EXPLAINING,
)
def bank_conflicts(*, kernel: str, of_step: float, ways: int, share: float) -> None: ...
@finding(
    "kernel {kernel} ({of_step:.0%} of the step): occupancy {occupancy:.0%}, limited by {limiter}",
    rank=Rank.EXPLAINING,
)
def low_occupancy(*, kernel: str, of_step: float, occupancy: float, limiter: str) -> None: ...
@finding(
    "kernel {kernel} ({of_step:.0%} of the step) spills {spill_bytes} bytes a thread: {share:.0%} "
    "of its loads are spill reloads",
    rank=Rank.EXPLAINING,
)
def registers_spill(*, kernel: str, of_step: float, spill_bytes: int, share: float) -> None: ...
@finding(
    "products in fp32 without tensor cores take {share:.0%} of the step",
    rank=Rank.EXPLAINING,
)
def fp32_products(*, share: float) -> None: ...


@finding(rank=Rank.EXPLAINING)
def slow_product_kernel(*, share: float, kernel: str, why: str) -> str:
    whys = {
        "alignment": "its alignment fits no full tensor-core load (sizes not multiples of 8)",
        "older": "it uses mma instructions of an older GPU where this one has wgmma",
    }
    return f"product kernel {kernel} ({share:.0%} of the step): {whys.get(why, why)}"


@finding(rank=Rank.EXPLAINING)
def tail_of_grid(*, kernel: str, of_step: float, blocks: int, waves: float, tail: float) -> str:
    which = f"kernel {kernel} ({of_step:.0%} of the step)"
    if waves < 1:
        return f"{which}: {tail:.0%} of the SMs have none of its {plural(blocks, 'block')}"
    return (
        f"{which}: tail effect (wave quantization): {blocks} thread blocks fill the device "
        f"{waves:.2f} times, and the last wave leaves {tail:.0%} of it idle"
    )


@finding(rank=Rank.EXPLAINING)
def compiles_in_steps(
    *, share: float | None, compilations: float, breaks: int, regions: float
) -> str:
    if compilations > 0:
        return f"torch.compile compiles again in steady steps ({compilations:.1f} a step)"
    return f"graph breaks: {regions:.0f} compiled pieces a step instead of one"


@finding(rank=Rank.EXPLAINING)
def clocks_held_back(
    *, slowed: float | None, clock: float | None, temperature_c: float | None
) -> str:
    if slowed:
        return f"{slowed:.0%} of the readings show a slowdown of the clocks (heat or hardware)"
    return f"runs at {clock or 0:.0%} of its highest clock at {temperature_c or 0:.0f} C"


@finding(
    "the optimizer takes {share:.0%} of the step in {kernels:.0f} operations for "
    "{parameters:plural parameter}",
    rank=Rank.EXPLAINING,
)
def optimizer_not_fused(*, share: float, kernels: float, parameters: int) -> None: ...
@finding(
    "rank {rank} is late by {share:.0%} of the step",
    rank=Rank.EXPLAINING,
)
def rank_late(*, rank: int, share: float) -> None: ...


@finding(
    "blocked at {line} ({function}) for {share:.0%} of the step: {source}",
    rank=Rank.EXPLAINING,
)
def waits_in_line(*, share: float, line: str, function: str, source: str) -> None: ...


@finding(rank=Rank.EXPLAINING)
def python_in_step(
    *, share: float, line: str, function: str, source: str, whole_function: bool
) -> str:
    if whole_function:
        return (
            f"{function} runs outside of torch's operations for {share:.0%} of the step, longest "
            f"at {line}: {source}"
        )
    return f"{line} ({function}) runs outside of torch for {share:.0%} of the step: {source}"


@finding(
    "converts {source_type} to {target_type} ({shapes}) in every step at {line}: {share:.0%} of it",
    rank=Rank.EXPLAINING,
)
def converts_each_step(
    *, share: float, line: str, source_type: str, target_type: str, shapes: str
) -> None: ...


@finding(
    "{operation} reallocates a growing tensor ({sizes} sizes a step) at {lines:list}: {share:.0%} "
    "of the step",
    rank=Rank.EXPLAINING,
)
def grows_by_copies(*, share: float, operation: str, sizes: int, lines: list[str]) -> None: ...
