"""A run that delays parts says so in its title: it tries no fixes."""

import pytest

from gpulab.core.jobs import StepPart
from gpulab.features.trials.parts import MAIN, PartKind, PartsSeen
from gpulab.features.trials.runs import Parts
from gpulab.options import Options
from gpulab.session.launch import single_launch
from gpulab.session.look import Look

SCENARIO = """
from gpulab import Scenario, Work
scenario = Scenario("mine")

@scenario.variant
def alone(lab):
    return Work(lambda: None)
"""


@pytest.mark.parametrize(
    ("text", "what", "step"),
    [("def step():\n    pass\n", "mine.py:step", "mine.py:step"), (SCENARIO, "mine.py", "alone")],
)
def test_what_if_has_a_title_of_its_own(tmp_path, monkeypatch, text, what, step):
    (tmp_path / "mine.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    part = StepPart(kind=PartKind.PHASE, name="first", passes=1, lane=MAIN, seconds=0.005)
    seen = PartsSeen(step_s=0.01, parts=[part])
    monkeypatch.setattr("gpulab.features.trials.runs.parts_of", lambda asked, look: seen)
    subject = Parts(single_launch(what), Options(device="cpu"), Look()).request().job.subject
    assert subject.title == f"What if a part of {step} were faster: each variant has one delayed."
    assert "Fixes tried" not in subject.source
    assert "--try" not in subject.source
