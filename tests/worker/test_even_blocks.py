"""Blocks of one length, so that what one variant leaves in the caches weighs alike in the times of all."""

from types import SimpleNamespace

import pytest

from gpulab.worker.timing.candidate import Candidate, even_out
from gpulab.worker.timing.clock import WallClock
from gpulab.worker.timing.plan import longest_block_s


def evened(*blocks, most_s=5e-3, clock=None):
    """Steps a block of candidates of so many steps of so many seconds; and the names that are calibrated anew."""
    events = []
    candidates = [Candidate(f"v{place}", None, 1.0, *block) for place, block in enumerate(blocks)]
    even_out(clock or WallClock(None), SimpleNamespace(emit=events.append), candidates, most_s)
    calibrated = {event.variant: event.steps_per_block for event in events}
    steps = [candidate.steps for candidate in candidates]
    assert calibrated == {f"v{place}": own for place, own in enumerate(steps) if own != blocks[place][0]}
    return steps


@pytest.mark.parametrize("disturbed", [1.02, 1.2, 1.49])
def test_twins_of_which_one_was_disturbed_while_it_was_calibrated_have_as_many_steps(disturbed):
    assert evened((2, 1e-3), (1, disturbed * 1e-3)) == [2, 2]
    assert evened((30, 70e-6), (20, disturbed * 70e-6), (1, 2e-3)) == [30, 30, 1]
    assert evened((1, 20e-3), (1, disturbed * 20e-3)) == [1, 1]


def test_all_blocks_are_as_long_as_the_longest():
    assert evened((1, 2e-3), (10, 100e-6)) == [1, 20]


def test_what_takes_long_makes_no_others_longer_than_a_process_has_time_for():
    assert evened((1, 20e-3), (10, 100e-6)) == [1, 50]
    assert evened((1, 20e-3), (10, 100e-6), most_s=0.2e-3) == [1, 10]


def test_cold_steps_stay_one_by_one():
    assert evened((1, 2e-3), (1, 100e-6), clock=WallClock(None, flush=lambda: None)) == [1, 1]


@pytest.mark.parametrize(("time_s", "candidates"), [(10.0, 3), (10.0, 20), (1.5, 3), (0.3, 3)])
def test_a_process_has_time_for_its_rounds_whatever_the_longest_block(time_s, candidates):
    rounds = 0.4 * time_s / 16 / (1.5 * candidates * longest_block_s(time_s, candidates))
    assert rounds >= 5 * 0.999
    assert longest_block_s(time_s, candidates) <= 5e-3
