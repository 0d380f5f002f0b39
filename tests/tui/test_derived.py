"""Runs that the lab derives from a step, from the screen: `f` tries fixes, `w` delays parts."""

import json
import select

import pytest
from journey import Tape, flat, idle, shown, until, visit
from recorded import run_file
from textual.widgets import OptionList

from gpulab.catalog.catalog import catalog
from gpulab.core.events import Samples
from gpulab.core.jobs import PartKind, StepPart
from gpulab.features.trials.fixes import FIXES, StepSeen
from gpulab.features.trials.parts import MAIN, PartsSeen
from gpulab.features.trials.result import ALL_TOGETHER
from gpulab.features.trials.runs import Fixes
from gpulab.options import Options
from gpulab.session.drive import StoppedError
from gpulab.session.launch import Launch
from gpulab.session.look import Look, LookError
from gpulab.session.run import FileSource
from gpulab.tui.derived import ChooseScreen

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


SEEN = StepSeen(
    why_not={fix.name: "no" for fix in FIXES} | {"fused_optimizer": "", "channels_last": ""}
)
PARTS = PartsSeen(
    step_s=0.01,
    parts=[
        StepPart(kind=PartKind.PHASE, name="load", passes=1, seconds=0.002, lane="thread"),
        StepPart(kind=PartKind.PHASE, name="data", passes=1, seconds=0.004, running=0.0, lane=MAIN),
        StepPart(
            kind=PartKind.PHASE, name="useful", passes=1, seconds=0.006, running=1.0, lane=MAIN
        ),
    ],
)


@pytest.fixture
def started(monkeypatch, tmp_path):
    """Looks at a step give `SEEN`. Requests of the runs that are started, each of which
    gives the events of the recorded one: fixes alone, or all together.
    """
    requests = []

    def start(request, path):
        requests.append(request)
        fixes = request.job.subject.fixes
        return FileSource(run_of_fixes(tmp_path, [ALL_TOGETHER] if len(fixes) == 1 else TRIED))

    monkeypatch.setattr("gpulab.session.launch.start", start)
    monkeypatch.setattr("gpulab.session.look.Look.ask", lambda *request: SEEN)
    return requests


TRIED = ["fused_optimizer", "channels_last"]


def run_of_fixes(folder, names):
    """A recorded run whose variants tried fixes of these names."""
    path = run_file("fixes", folder)
    text = path.read_text().replace('"first"', f'"{TRIED[0]}"').replace('"second"', f'"{TRIED[1]}"')
    fixes = json.dumps([{"name": name, "sentence": name} for name in names])
    path.write_text(text.replace('"judge":""', f'"judge":"","fixes":{fixes}', 1))
    return path


def fixes_of(request):
    return [fix.name for fix in request.job.subject.fixes]


def program(folder):
    file = folder / "train.py"
    file.write_text(TRAIN)
    return file


def test_all_fixes_are_tried_then_those_that_gained_together_and_both_are_shown(tmp_path, started):
    async def journey(pilot):
        await pilot.press("F")
        await until(pilot, lambda: len(started) == 2 and idle(pilot))
        assert len(fixes_of(started[0])) == len(FIXES)
        assert fixes_of(started[1]) == [ALL_TOGETHER]
        assert "all_together: fused_optimizer, channels_last" in flat(pilot)
        assert "all_together 3.19x 3.08 to 3.38 0.0e+00 /1e-04 faster" in flat(pilot)
        await pilot.press("y")
        copied = (tmp_path / "fixes.md").read_text()
        assert "all_together: fused_optimizer, channels_last" in copied

    visit(journey, program(tmp_path), size=(110, 60))


def test_one_part_of_a_step_is_delayed_and_a_second_run_waits_for_the_first(tmp_path, monkeypatch):
    file = tmp_path / "mine.py"
    file.write_text(PHASES)
    tape = Tape(run_file("fixes", tmp_path), lambda event: isinstance(event, Samples))
    started = []

    def start(request, path):
        started.append(request.job.subject)
        return tape

    monkeypatch.setattr("gpulab.session.launch.start", start)
    answers = [LookError("its step fails"), PARTS]

    def ask(*_):
        answer = answers.pop(0)
        if isinstance(answer, LookError):
            raise answer
        return answer

    monkeypatch.setattr("gpulab.session.look.Look.ask", ask)

    async def journey(pilot):
        await pilot.press("w")
        await until(pilot, lambda: "its step fails" in shown(pilot))
        await pilot.press("w")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseScreen))
        lines = [str(option.prompt) for option in pilot.app.screen.query_one(OptionList).options]
        assert lines[0] == "all parts, one after the other"
        assert lines[1] == " 60.0%  phase useful"
        assert lines[2].startswith(" 40.0%  phase data: it waits for another thread")
        assert lines[3] == " 20.0%  phase load (thread)"
        await pilot.press("down", "down", "enter")  # beyond the one that cannot be delayed
        await until(pilot, lambda: "MEASURE" in shown(pilot))
        (subject,) = started
        assert [part.name for part in subject.parts] == ["load"]
        names = [info.name for info in subject.variants]
        assert names[2:] == ["phase load: longer", "phase load: others longer"]
        await pilot.press("w")
        assert "mine is running: s s stops it" in shown(pilot)
        tape.go_on()
        await until(pilot, lambda: idle(pilot) and "FASTER" in shown(pilot))

    visit(journey, file, size=(110, 40))


def test_who_leaves_ends_the_look_that_nobody_waits_for(tmp_path, monkeypatch):
    """asyncio joins its threads: the app could not be quit before the step has ended."""
    looks = []

    def ask(look, *_):
        looks.append(look)
        cancelled = select.select([look._cancelling.fd], [], [], 60)[0]
        assert cancelled
        raise StoppedError

    monkeypatch.setattr("gpulab.session.look.Look.ask", ask)

    async def journey(pilot):
        await pilot.press("w")
        await until(pilot, lambda: len(looks) == 1)
        await pilot.press("w")  # again: the first one ends
        await until(pilot, lambda: len(looks) == 2)
        assert select.select([looks[0]._cancelling.fd], [], [], 0)[0]
        await pilot.press("q")

    visit(journey, program(tmp_path))


@pytest.mark.slow
def test_the_parts_of_a_step_are_delayed_and_the_result_has_their_table(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(PHASES)

    async def journey(pilot):
        await pilot.press("w")
        assert "mine: analyzing a step" in shown(pilot)
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
    request = Fixes(Launch(entry, ("step",)), Options(device="cpu", smoke=True), Look()).request()
    names = fixes_of(request)
    assert "compile_model" in names
    assert request.job.subject.variants[0].name == "as_it_is"
