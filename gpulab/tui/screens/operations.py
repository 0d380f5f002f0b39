"""The operations of a run, all of them, over the whole screen: sorted and summed by a key."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual.binding import Binding, BindingType

from gpulab.core.statuses import GroupBy
from gpulab.draw.blocks import Block, Fitted, Group, Text
from gpulab.features.goodput.operation_table import OperationTable, TableChoice, sort_of, sorts_of
from gpulab.report.report import RunReport, VariantReport
from gpulab.tui.bindings import HELP
from gpulab.tui.panels.pane import Pane
from gpulab.tui.screens.page import Page


class OperationsScreen(Page):
    """The table of one variant's operations; keys choose the column it is sorted by, what its rows
    sum, and the variant.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right", "sort(1)", "sort", key_display="← →", tooltip="sort by the next column"),
        Binding("left", "sort(-1)", show=False, tooltip="sort by the column before it"),
        Binding("u", "group", "sum by", tooltip="sum by operation, line, module, kernel"),
        Binding("tab", "variant", "variant", tooltip="the next variant that was profiled"),
        Binding("escape", "app.pop_screen", "back", tooltip="back"),
        HELP,
    ]

    def __init__(self, report: RunReport) -> None:
        super().__init__("operations", lambda _: self._table(), wide=True)
        self._variants = with_operations(report)
        self._place = 0
        self._choice = TableChoice(most=None)

    def action_sort(self, by: int) -> None:
        sorts = sorts_of(self._variant, self._choice.group)
        current = sort_of(self._variant, self._choice)
        place = sorts.index(current) if current in sorts else -by
        self._choose(replace(self._choice, sort=sorts[(place + by) % len(sorts)]))

    def action_group(self) -> None:
        groups = list(GroupBy)
        place = groups.index(self._choice.group)
        self._choose(replace(self._choice, group=groups[(place + 1) % len(groups)]))

    def action_variant(self) -> None:
        self._place = (self._place + 1) % len(self._variants)
        self._choose(self._choice)

    @property
    def _variant(self) -> VariantReport:
        return self._variants[self._place]

    def _choose(self, choice: TableChoice) -> None:
        self._choice = choice
        self.query_one("#page", Pane).scroll_home(animate=False)
        self._draw()

    def _draw(self) -> None:
        sort = sort_of(self._variant, self._choice)
        facts = f"{self._variant.name} · by {self._choice.group} · sorted by {sort}"
        self._title = f"operations of {facts}"
        super()._draw()

    def _table(self) -> Block:
        table = Fitted(
            OperationTable(self._variant, self._choice, str(self._choice.group)).of_width
        )
        return Group(table, Text("seconds, calls, FLOPs and bytes are those of a step", "dim"))


def with_operations(report: RunReport) -> list[VariantReport]:
    """The variants of which operations were recorded."""
    return [
        variant
        for variant in report.variants
        if variant.goodput is not None and variant.goodput.operations
    ]
