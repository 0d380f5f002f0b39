"""Roofs of a CPU that an earlier run measured: real runs, one after the other."""

import pytest
from finished_runs import events_of

from gpulab.core.events import StageStarted
from gpulab.core.payloads import CACHE, MATRIX, MEMORY
from gpulab.core.statuses import Stage
from gpulab.features.roofline.events import CeilingsMeasured, RoofProbed

SCENARIO = '''
"""A product."""
import torch
from gpulab import Scenario, Work
scenario = Scenario("t", params={"moved": 0})

@scenario.variant
def first(lab, moved):
    return _work(moved)

@scenario.variant
def second(lab, moved):
    return _work(4 * moved)

def _work(moved):
    a = torch.rand(128, 128)
    return Work(lambda: a @ a, inputs=a, flops=2 * 128**3, bytes=moved or None)
'''


def passes(finished):
    """How often the run measured the roofs after its rounds."""
    assert finished.code in (0, 6), finished.stderr
    return sum(event.stage == Stage.CEILINGS for event in events_of(finished, StageStarted))


@pytest.mark.slow
def test_roofs_of_the_last_hour_hold_where_the_rounds_have_all_that_is_needed(lab):
    path = lab.write("product.py", SCENARIO)
    first = lab.run(path, time_s="1", fresh=True)
    assert passes(first)
    measured = events_of(first, CeilingsMeasured)[-1].ceilings
    if not all(each.steady for each in measured if each.roof in (MEMORY, CACHE, MATRIX)):
        pytest.skip("other work disturbs this machine")
    second = lab.run(path, time_s="1", fresh=True)
    assert not passes(second)
    assert events_of(second, RoofProbed)
    (known,) = events_of(second, CeilingsMeasured)
    assert known.cached
    # no probe stands for what 64 KiB and 256 KiB in a cache take
    third = lab.run(path, "--set", "moved=65536", time_s="1", fresh=True)
    assert passes(third)
