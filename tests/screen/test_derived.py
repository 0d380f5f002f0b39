"""Runs that the lab derives from a step, from the screen: `f` tries fixes, `w` delays parts."""

from journey import flat, idle, shown, until, visit

from gpulab.core.jobs import RunRequest
from gpulab.tui import derived

TRAIN = """
import time

def step():
    return 1.0
"""
PHASES = """
import time
from gpulab import Scenario, Work

scenario = Scenario("mine")

@scenario.variant
def only(lab):
    def step():
        with lab.phase("part"):
            time.sleep(0.001)
        return 1.0
    return Work(step)
"""


def test_the_parts_of_a_step_are_delayed_and_the_result_has_their_table(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(PHASES)

    async def journey(pilot):
        await pilot.press("w")
        assert "mine: looking at a step" in shown(pilot)
        await until(pilot, lambda: pilot.app.screen.runs.running is not None)
        await pilot.press("w")
        assert "mine is running: s s stops it" in shown(pilot)
        await until(pilot, lambda: idle(pilot))
        await until(pilot, lambda: "phase part" in flat(pilot))
        assert "slope 1: on the critical path" in flat(pilot)

    visit(journey, file, size=(110, 60))


def test_f_tries_the_fixes_of_a_function_and_a_refusal_is_said(tmp_path, monkeypatch):
    file = tmp_path / "train.py"
    file.write_text(TRAIN)
    asked = []

    def request_of(entry, settings, what):
        asked.append((entry.name, what))
        return "no fix that can be applied fits this step"

    async def journey(pilot):
        await pilot.press("f")
        await until(pilot, lambda: "no fix that can be applied" in shown(pilot))
        assert asked == [("train:step", "fixes")]

    monkeypatch.setattr(derived, "request_of", request_of)
    visit(journey, file)


def test_a_request_of_fixes_has_them_all(tmp_path):
    from gpulab.catalog.catalog import catalog
    from gpulab.session.settings import Settings

    file = tmp_path / "train.py"
    file.write_text(TRAIN)
    entry = next(entry for entry in catalog([file]) if entry.function == "step")
    request = derived.request_of(entry, Settings(device="cpu", smoke=True), "fixes")
    assert isinstance(request, RunRequest)
    names = [fix.name for fix in request.job.subject.fixes]
    assert "compile_step" in names
    assert request.job.subject.variants[0].name == "as_it_is"
