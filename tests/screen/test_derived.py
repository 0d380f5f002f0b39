"""Runs that the lab derives from a step, from the screen: `f` tries fixes, `w` delays parts."""

import pytest
from journey import Tape, flat, idle, shown, until, visit
from recorded import SMALL_REQUEST, run_file

from gpulab.catalog.catalog import catalog
from gpulab.core.events import Samples
from gpulab.core.jobs import RunRequest
from gpulab.session.settings import Settings
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


@pytest.mark.parametrize(("key", "what"), [("f", "fixes"), ("w", "what-if")])
def test_a_step_is_looked_at_and_the_run_derived_from_it_is_shown(tmp_path, monkeypatch, key, what):
    file = tmp_path / "train.py"
    file.write_text(TRAIN)
    answers = ["no fix or part of this step", SMALL_REQUEST]
    asked, started = [], []
    tape = Tape(run_file("fixes", tmp_path), lambda event: isinstance(event, Samples))

    def request_of(entry, settings, what):
        asked.append((entry.name, what))
        return answers.pop(0)

    def start(request, path):
        started.append((request, path.name.split("-", 1)[1]))
        return tape

    monkeypatch.setattr(derived, "request_of", request_of)
    monkeypatch.setattr("gpulab.session.launch.start", start)

    async def journey(pilot):
        await pilot.press(key)
        await until(pilot, lambda: "no fix or part of this step" in shown(pilot))
        assert asked == [("train:step", what)]
        assert not started
        await pilot.press(key)
        await until(pilot, lambda: "MEASURE" in shown(pilot))
        ((request, name),) = started
        assert request is SMALL_REQUEST
        assert name.startswith(f"train-{what}")
        await pilot.press(key)
        assert "train:step is running: s s stops it" in shown(pilot)
        tape.go_on()
        await until(pilot, lambda: idle(pilot) and "FASTER" in shown(pilot))

    visit(journey, file, size=(110, 40))


@pytest.mark.slow
def test_the_parts_of_a_step_are_delayed_and_the_result_has_their_table(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(PHASES)

    async def journey(pilot):
        await pilot.press("w")
        assert "mine: looking at a step" in shown(pilot)
        await until(pilot, lambda: pilot.app.screen.runs.running is not None)
        await until(pilot, lambda: idle(pilot))
        await until(pilot, lambda: "phase part" in flat(pilot))
        assert "slope 1: on the critical path" in flat(pilot)

    visit(journey, file, size=(110, 60))


@pytest.mark.slow
def test_a_request_of_fixes_has_them_all(tmp_path):
    file = tmp_path / "train.py"
    file.write_text(TRAIN)
    entry = next(entry for entry in catalog([file]) if entry.function == "step")
    request = derived.request_of(entry, Settings(device="cpu", smoke=True), "fixes")
    assert isinstance(request, RunRequest)
    names = [fix.name for fix in request.job.subject.fixes]
    assert "compile_step" in names
    assert request.job.subject.variants[0].name == "as_it_is"
