"""The operations that a step is made of: those that take longest first."""

from __future__ import annotations

from gpulab.draw.blocks import Block, Fitted, Group, Text
from gpulab.features.goodput.operation_table import MOST_ROWS, OperationTable, TableChoice
from gpulab.report.report import RunReport, VariantReport

_HEAD = "operations of a step"


def full_tables(report: RunReport, choice: TableChoice) -> list[Block]:
    """A table of all columns of each variant that was profiled, as somebody asked for it."""
    return _tables(_profiled(report), choice, with_notes=True)


def operations(report: RunReport, *, most: int = MOST_ROWS) -> Block | None:
    """The `most` operations that a step spends most in; of several variants those of the baseline
    and of the last.
    """
    profiled = _profiled(report)
    if not profiled:
        return None
    first, *others = profiled
    shown = [first, *others[-1:]]
    blocks = _tables(shown, TableChoice(most=most), with_notes=False)
    if omitted := [variant.name for variant in profiled if variant not in shown]:
        blocks.append(Text(f"not shown: {', '.join(omitted)}", "dim"))
    return Group(*blocks)


def _profiled(report: RunReport) -> list[VariantReport]:
    return [each for each in report.variants if each.goodput and each.goodput.operations]


def _tables(variants: list[VariantReport], choice: TableChoice, *, with_notes: bool) -> list[Block]:
    blocks: list[Block] = []
    for variant in variants:
        title = _HEAD if len(variants) == 1 else f"operations of {variant.name}"
        table = OperationTable(variant, choice, title, with_notes=with_notes)
        blocks.append(Fitted(table.of_width))
    return blocks
