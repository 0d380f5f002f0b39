"""What variants chose with `gpulab.tune`: every candidate's time, the final, and what taking the
second would cost.
"""

from __future__ import annotations

from gpulab.core.payloads import Tuning
from gpulab.core.units import plural, seconds, span, times
from gpulab.draw.blocks import Block, Group, Text, columns_table
from gpulab.report.report import RunReport, VariantReport

_MOST_ROWS = 24


def tunings(report: RunReport) -> Block | None:
    """A table for each variant that chose; None where none did."""
    parts: list[Block] = []
    for variant in report.variants:
        if variant.tuning is not None:
            parts += [*([""] if parts else []), *_tuning(variant, variant.tuning)]
    return Group(*parts) if parts else None


def chosen(variant: VariantReport) -> str:
    """`chose block=128 warps=4 of 12 candidates`; empty of a variant that did not choose."""
    tuning = variant.tuning
    return (
        f"chose {tuning.tried[0].config} of {plural(len(tuning.tried), 'candidate')}"
        if tuning
        else ""
    )


def _tuning(variant: VariantReport, tuning: Tuning) -> list[Block]:
    table = columns_table()
    table.add_column(f"candidates of {variant.name}", overflow="fold", min_width=12)
    for head in ("time", "of best", "99 % interval"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    measured = [tried for tried in tuning.tried if tried.time_s is not None]
    for place, tried in enumerate(measured[:_MOST_ROWS]):
        style = "bold" if place == 0 else "dim" if tried.low is None else ""
        cells = [
            tried.config,
            seconds(tried.time_s) if tried.time_s else "",
            times(tried.ratio) if tried.ratio and place else "",
            span(tried.low, tried.high) if tried.low and tried.high else "",
            "chosen" if place == 0 else "as good" if place <= tuning.tied else "",
        ]
        table.add_row(*(cell for cell in cells), style=style)
    left_out = len(measured) - _MOST_ROWS
    parts: list[Block] = [table]
    if left_out > 0:
        parts.append(Text(f"and {left_out} slower ones, which the JSON has", "dim"))
    failed = [tried for tried in tuning.tried if tried.time_s is None]
    parts += [Text(f"{tried.config}: {tried.reason}", "dim") for tried in failed[:_MOST_ROWS]]
    return [*parts, Text(_regret(tuning)), Text(_method(variant, tuning), "dim")]


def _regret(tuning: Tuning) -> str:
    second = tuning.second
    if second is None or second.ratio is None or second.low is None or second.high is None:
        return "no other candidate was left to compare it with"
    low, high = f"{100 * (second.low - 1):.2g}", f"{100 * (second.high - 1):.2g} %"
    regret = (
        f"taking the second ({second.config}) costs {100 * (second.ratio - 1):.2g} % ({low} to "
        f"{high})"
    )
    if not tuning.tied:
        return regret
    return (
        f"{regret}; the chosen one is not known to be 1 % faster than "
        f"{plural(tuning.tied, 'other')}"
    )


def _method(variant: VariantReport, tuning: Tuning) -> str:
    measured = sum(tried.time_s is not None for tried in tuning.tried)
    blocks = sum(tried.blocks for tried in tuning.tried)
    final = f"final of {len(tuning.finalists)} in {plural(tuning.rounds, 'paired round')}"
    eliminated = measured - len(tuning.finalists)
    final += f", {eliminated} eliminated before" if eliminated else ""
    took = f"{seconds(tuning.seconds)}, {seconds(tuning.build_s)} of it to build and check"
    when = (
        f" · measured {tuning.at[:10]}, in an earlier run (--retune: again)"
        if variant.tuning_cached
        else ""
    )
    return f"{plural(measured, 'candidate')} in {plural(blocks, 'block')}, {final} · {took}{when}"
