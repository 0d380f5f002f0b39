"""The operations of a run over the whole screen."""

from journey import flat, idle, shown, until, visit
from recorded import run_of_a_transformer

from gpulab.session.run import FileSource
from gpulab.tui.screens.page import Page


def test_o_shows_all_operations(hostile_scenario, tmp_path):
    async def journey(pilot):
        await pilot.press("o")
        await until(pilot, lambda: "no operations of recorded so far" in flat(pilot))
        await pilot.press("r")
        await until(pilot, lambda: idle(pilot))
        await pilot.press("o")
        await until(pilot, lambda: isinstance(pilot.app.screen, Page))
        await until(pilot, lambda: "operations of fp32" in shown(pilot))
        assert "aten::addmm" in shown(pilot).splitlines()[3]
        await pilot.press("end")
        await until(pilot, lambda: "are those of a step" in flat(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, Page))
        await pilot.press("4")
        await until(pilot, lambda: "FLOP/s" in shown(pilot))
        pane = pilot.app.screen.query_one("#roofline-pane")
        assert "operations of fp32" in pane.text
        assert "A addmm 4096, 16384x1024" in pane.text

    path = run_of_a_transformer(tmp_path)
    visit(journey, hostile_scenario, size=(120, 40), starter=lambda *_: FileSource(path))
