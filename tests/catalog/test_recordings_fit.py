"""Recordings that ship are of the lessons of today, whole, and doubt no more than the lessons do."""

import pytest
from recorded import recorded_path
from recording_faults import code_of, faults_of

from gpulab.catalog.recordings import recorded_name, recordings

BY_NAME = {f"{path.parent.name}/{recorded_name(path)}": path for path in recordings()}
OLD = {
    "h100/collectives",
    "h200/custom_op",
    "h200/gradient_accumulation",
    "h200/pinned_memory",
    "h200/small_kernels",
}
"""Effects within the width of a control beside which the host was not at rest: they are to be
recorded anew, and whoever does takes their names from here.
"""
SCENARIO = '''
"""Lesson: x."""
from gpulab import Scenario, Work
scenario = Scenario("topic", claim="2x", params={"n": 4}, cpu={"n": 2})

@scenario.variant
def one(lab, n):
    """Does it."""
    return Work(lambda: n + 1)  # once
'''


@pytest.mark.parametrize("name", BY_NAME)
def test_a_recording_has_no_fault_but_an_old_one(name):
    faults = list(faults_of(BY_NAME[name]))
    assert not faults or name in OLD
    assert faults or name not in OLD, "it has no fault: take its name from OLD"


def test_every_old_recording_still_ships():
    assert BY_NAME.keys() >= OLD


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("h200/precision", "bf16: bf16 at 106.4% of its roof"),
        ("h200/precision", "another code than the lesson of today"),
        ("h200/jax_jit", "exit code 130: interrupted"),
        ("function", "step: cause unknown"),
        ("standin-shared", "control: invalid"),
        ("standin-shared", "first vs naive: invalid"),
        ("batched_matmul-h100-1", "bmm vs loop: doubtful, measured_in_one_process, checks_not_run"),
    ],
)
def test_each_fault_is_found(name, fault):
    assert fault in faults_of(recorded_path(name))


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("Lesson: x.", "Another text.", True),
        ("Does it.", "Adds one.", True),
        ("2x", "3x", True),
        ('{"n": 2}', '{"n": 3}', True),
        ("# once", "# for each", True),
        ('{"n": 4}', '{"n": 5}', False),
        ("n + 1", "n + 2", False),
        ("def one", "def another", False),
    ],
)
def test_the_code_of_a_lesson_is_what_a_default_run_is_made_of(before, after, same):
    assert before in SCENARIO
    assert (code_of(SCENARIO) == code_of(SCENARIO.replace(before, after))) is same
