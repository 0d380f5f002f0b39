"""Scenarios of several ranks: real processes with gloo between them, each one's output checked, and
a rank that fails, ends or does not come named with where it is.
"""

import pytest
from failing_ranks import FAULTS, SAYS, SUMS, assert_named

from gpulab.core.statuses import ExitCode, Status

QUICK = ("is_killed", "hangs")
"""The others run with the slow tests."""


@pytest.fixture(scope="module")
def sums(module_lab):
    return module_lab.run(module_lab.write("sums.py", SUMS), "--smoke")


def test_a_variant_that_is_wrong_on_one_rank_alone_is_wrong(sums):
    statuses = {name: sums.variant(name)["status"] for name in ("at_once", "wrong_on_the_last")}
    assert statuses == {"at_once": Status.OK, "wrong_on_the_last": Status.WRONG}


def test_each_rank_has_its_times(sums):
    ranks = sums.variant("at_once")["ranks"]
    assert [rank["rank"] for rank in ranks] == [0, 1, 2]
    assert all(rank["time_s"] > 0 for rank in ranks)


@pytest.mark.parametrize(
    "how", [pytest.param(how, marks=[pytest.mark.slow] * (how not in QUICK)) for how in SAYS]
)
def test_a_rank_that_fails_is_named_and_no_process_is_left(lab, how):
    finished = lab.run(lab.write("faults.py", FAULTS), "--smoke", "--set", f"how={how}")
    assert finished.code == ExitCode.FAILED
    message = finished.run["failures"][0]["cause"]["values"]["message"]
    assert_named(how, message, last=2)
    assert lab.none_left()


def test_more_ranks_than_there_may_be_are_refused(lab):
    finished = lab.run(lab.write("sums.py", SUMS), "--set", "ranks=65")
    assert finished.code == 2
    assert "ranks are a number from 1 to 64" in finished.stderr
