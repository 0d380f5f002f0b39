"""Findings of a fleet: why a GPU is slower than the median of its model."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding


@finding()
def low_clock(*, mhz: float, median_mhz: float, share: float, reasons: list[str]) -> str:
    why = f" ({', '.join(reasons)})" if reasons else ""
    return (
        f"low SM clock{why}: {mhz:,.0f} MHz, median {median_mhz:,.0f}: the clock explains "
        f"{share:.0%}"
    )


@finding(
    "low memory clock: {mhz:,.0f} MHz, median {median_mhz:,.0f}: the clock explains {share:.0%}"
)
def low_memory_clock(*, mhz: float, median_mhz: float, share: float) -> None: ...


@finding()
def slow_hbm(*, rows_remapped: int, ecc_errors: int) -> str:
    evidence = []
    if rows_remapped:
        evidence.append(f"{rows_remapped} memory rows remapped")
    if ecc_errors:
        evidence.append(f"{ecc_errors} uncorrected memory errors (ECC)")
    return ", ".join(["slow HBM: memory bandwidth alone is low", *evidence])


@finding()
def bad_link(
    *, width: int | None, width_max: int | None, generation: int | None, generation_max: int | None
) -> str:
    text = "bad link: transfers alone are slow"
    if width and width_max and width < width_max:
        text += f", PCIe width {width} of {width_max}"
    if generation and generation_max and generation < generation_max:
        text += f", PCIe generation {generation} of {generation_max}"
    return text


@finding()
def noisy_neighbour(*, spread: float, median_spread: float, shared: float | None) -> str:
    text = f"noisy neighbour: times vary by {spread:.1%}, median {median_spread:.1%}"
    if shared:
        text += f", another process on the GPU in {shared:.0%} of the readings"
    return text


@finding("cause unknown")
def slow_for_unknown_reasons() -> None: ...
@finding("no measurement: {message}")
def gpu_not_measured(*, message: str) -> None: ...


@finding(
    "no comparison: {needed} GPUs of one model with the same measurements are needed",
    rank=Rank.INVALIDATING,
)
def too_few_gpus(*, needed: int) -> None: ...
@finding("no run file could be read in {folder}", rank=Rank.INVALIDATING)
def no_run_files(*, folder: str) -> None: ...
