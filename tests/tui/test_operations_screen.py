"""The operations of a run over the whole screen: keys sort and sum them."""

import pytest
from journey import flat, idle, shown, until, visit
from recorded import run_file, run_of_a_transformer

from gpulab.session.run import FileSource
from gpulab.tui.screens.operations import OperationsScreen


def status(pilot):
    return shown(pilot).splitlines()[0]


def test_o_shows_all_operations_and_keys_sort_and_sum_them(hostile_scenario, tmp_path):
    async def journey(pilot):
        await pilot.press("o")
        await until(pilot, lambda: "no operations of recorded so far" in flat(pilot))
        await pilot.press("r")
        await until(pilot, lambda: idle(pilot))
        await pilot.press("o")
        await until(pilot, lambda: isinstance(pilot.app.screen, OperationsScreen))
        await until(pilot, lambda: "sorted by device" in status(pilot))
        assert "device ↓" in shown(pilot)
        assert "aten::addmm" in shown(pilot).splitlines()[3]
        await pilot.press("end")
        await until(pilot, lambda: "derived from shapes and types" in shown(pilot))
        await pilot.press("right")
        await until(pilot, lambda: "sorted by device-total" in status(pilot))
        await pilot.press("left", "left")
        await until(pilot, lambda: "total ↓" in shown(pilot) and "device ↓" not in shown(pilot))
        await pilot.press("u", "u", "u")
        await until(pilot, lambda: "by kernel" in status(pilot))
        assert "launched by" in shown(pilot)
        await pilot.press("tab")
        await until(pilot, lambda: "tf32 · by kernel" in status(pilot))
        await pilot.press("question_mark")
        await until(pilot, lambda: "sum by operation, line, module, kernel" in flat(pilot))
        await pilot.press("escape", "escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, OperationsScreen))
        await pilot.press("4")
        await until(pilot, lambda: "FLOP/s" in shown(pilot))
        pane = pilot.app.screen.query_one("#roofline-pane")
        assert "operations of fp32" in pane.text
        assert "A addmm 4096, 16384x1024" in pane.text

    path = run_of_a_transformer(tmp_path)
    visit(journey, hostile_scenario, size=(120, 40), starter=lambda *_: FileSource(path))


@pytest.mark.slow
def test_an_earlier_run_without_totals_has_its_table_too(hostile_scenario, tmp_path):
    async def journey(pilot):
        await pilot.press("r")
        await until(pilot, lambda: idle(pilot))
        await pilot.press("o")
        await until(pilot, lambda: "self ↓" in shown(pilot))
        await pilot.press("u")
        await until(pilot, lambda: "no line is known" in shown(pilot))

    path = run_file("lesson-small", tmp_path)
    visit(journey, hostile_scenario, starter=lambda entry, settings: FileSource(path))
