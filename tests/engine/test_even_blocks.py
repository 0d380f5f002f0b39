"""Blocks of one length, so that what one variant leaves in the caches weighs alike in the times of
all.
"""

from types import SimpleNamespace

import pytest

from gpulab.engine.measure.candidate import Candidate, equalize_blocks
from gpulab.engine.measure.clock import WallClock
from gpulab.engine.measure.plan import lead_in_steps, longest_block_s


def evened(*blocks, most_s=5e-3, clock=None):
    """Steps a block of candidates of so many steps of so many seconds."""
    events = []
    candidates = [Candidate(f"v{place}", None, 1.0, *block) for place, block in enumerate(blocks)]
    equalize_blocks(
        clock or WallClock(None), SimpleNamespace(emit=events.append), candidates, most_s
    )
    assert told(events) == {
        candidate.name: (candidate.steps, candidate.lead_in)
        for candidate, block in zip(candidates, blocks, strict=True)
        if (candidate.steps, candidate.lead_in) != (block[0], lead_in_steps(*block))
    }
    return [candidate.steps for candidate in candidates]


def told(events):
    return {event.variant: (event.steps_per_block, event.lead_in) for event in events}


@pytest.mark.parametrize("disturbed", [1.02, 1.2, 1.9])
def test_twins_of_which_one_was_disturbed_while_it_was_calibrated_have_as_many_steps(disturbed):
    assert evened((2, 1e-3), (1, disturbed * 1e-3)) == [2, 2]
    *twins, other = evened((30, 70e-6), (20, disturbed * 70e-6), (1, 2e-3))
    assert twins[0] == twins[1] >= 30
    assert other == 1
    assert evened((1, 20e-3), (1, disturbed * 20e-3)) == [1, 1]


def test_twins_stay_together_where_a_third_is_within_reach_of_one_of_them():
    twins = (3, 890e-6), (3, 978e-6)
    assert evened(*twins, (6, 450e-6)) == [3, 3, 7]
    assert evened((3, 890e-6), (2, 1290e-6), (6, 450e-6)) == [3, 3, 6]


def test_what_takes_long_makes_no_others_longer_than_a_process_has_time_for():
    assert evened((1, 20e-3), (10, 100e-6)) == [1, 50]
    assert evened((1, 20e-3), (10, 100e-6), most_s=0.2e-3) == [1, 10]


def test_cold_steps_stay_one_by_one():
    assert evened((1, 2e-3), (1, 100e-6), clock=WallClock(None, flush=lambda: None)) == [1, 1]


@pytest.mark.parametrize(
    ("time_s", "candidates"), [(10.0, 3), (10.0, 8), (10.0, 20), (1.5, 3), (0.3, 3)]
)
def test_longer_blocks_leave_a_process_time_for_its_rounds(time_s, candidates):
    block_s = longest_block_s(time_s, candidates)
    lead_in_s = 1e-3 * lead_in_steps(5, 1e-3)
    assert 0 <= block_s <= 5e-3
    assert block_s == 0 or 0.4 * time_s / 16 / (candidates * (block_s + lead_in_s)) >= 5 * 0.999


def test_steps_before_a_block_take_as_long_whatever_one_takes():
    lead_ins = [
        step_s * lead_in_steps(round(3e-3 / step_s), step_s)
        for step_s in (20e-9, 20e-6, 0.5e-3, 1e-3, 3e-3)
    ]
    assert lead_ins == pytest.approx([3e-3] * 5, rel=0.01)
    assert [lead_in_steps(1, step_s) for step_s in (20e-3, 0.1, 1.0)] == [1, 0, 0]
