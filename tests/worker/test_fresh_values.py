"""Single steps on new and on old values, and among others in a block: whom the differences accuse."""

import pytest

from gpulab.worker.checking.fresh_values import FreshTimes, refuse
from gpulab.worker.process.errors import RefusedError


def times(fresh_s, same_s, block_step_s):
    return FreshTimes([fresh_s] * 3, [same_s] * 3, block_step_s)


EVEN = times(10e-3, 10e-3, 9e-3)
REMEMBERS, REPLAYS = times(10e-3, 1e-3, 1e-3), times(10e-3, 10e-3, 0.1e-3)


@pytest.mark.parametrize(("own", "code"), [(REMEMBERS, "remembers_its_inputs"), (REPLAYS, "computes_when_waited_for")])
def test_who_computes_only_now_and_then_is_accused_unless_the_baseline_does_so_too(own, code):
    assert own.is_suspicious
    with pytest.raises(RefusedError) as raised:
        refuse("v", own, EVEN)
    assert raised.value.finding.code == code
    refuse("v", own, own)


def test_waiting_for_a_short_step_accuses_nobody():
    launched = times(60e-6, 60e-6, 5e-6)
    assert not launched.is_suspicious
    refuse("v", launched, EVEN)
