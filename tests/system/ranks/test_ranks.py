"""Scenarios of several ranks: real processes with gloo between them, each one's output checked, and
a rank that fails, ends or does not come named with where it is.
"""

import pytest

from gpulab.core.statuses import ExitCode, Status

SUMS = '''
"""Sums over ranks."""
import torch
import torch.distributed as dist
from gpulab import Scenario, Work
scenario = Scenario("ranks", params={"ranks": 3, "tensors": 4}, ranks="ranks")

def tensors_of(count):
    return [torch.randn(100) for _ in range(count)], [torch.empty(100) for _ in range(count)]

@scenario.variant
def one_by_one(lab, tensors):
    given, sums = tensors_of(tensors)
    def step():
        for tensor, out in zip(given, sums):
            out.copy_(tensor)
            dist.all_reduce(out, group=lab.group)
    return Work(step, inputs=given, output=sums)

def flat(lab, tensors, forgets):
    given, sums = tensors_of(tensors)
    def step():
        together = torch.cat(given)
        dist.all_reduce(together, group=lab.group)
        for out, part in zip(sums, together.split(100)):
            if lab.rank != forgets or out is not sums[-1]:
                out.copy_(part)
            else:
                out.zero_()
    return Work(step, inputs=given, output=sums)

@scenario.variant
def at_once(lab, tensors):
    return flat(lab, tensors, forgets=None)

@scenario.variant
def wrong_on_rank_2(lab, tensors):
    return flat(lab, tensors, forgets=2)
'''
FAULTS = '''
"""One rank fails."""
import os, time
import torch
import torch.distributed as dist
from gpulab import Scenario, Work
scenario = Scenario(
    "ranks", params={"how": "none"}, ranks=3, env={"GPULAB_RANK_TIMEOUT": "3"}
)

@scenario.variant
def sums(lab, how):
    given, out = torch.randn(100), torch.empty(100)
    calls = [0]
    def step():
        calls[0] += 1
        if calls[0] == 12 and lab.rank == 2:
            if how == "exits":
                os._exit(0)
            if how == "is_killed":
                os.kill(os.getpid(), 9)
            if how == "raises":
                raise ValueError("no more batches")
            if how == "has_no_memory":
                torch.empty(1 << 50)
            if how == "hangs":
                time.sleep(600)
            if how == "broadcasts":
                dist.broadcast(out, 0, group=lab.group)
                return
        out.copy_(given)
        dist.all_reduce(out, group=lab.group)
    return Work(step, inputs=given, output=out)
'''
SAYS = {
    "exits": ("rank 2 ended: it exited with code 0",),
    "is_killed": ("rank 2 ended: SIGKILL",),
    "raises": ("rank 2: ValueError: no more batches (line ",),
    "has_no_memory": ("rank 2: ", "can't allocate memory"),
    "hangs": ("rank 2 did not come to all_reduce", "the last it called is all_reduce", "line "),
    "broadcasts": ("rank 2 called broadcast", "rank 0 all_reduce"),
}


QUICK = ("is_killed", "hangs")
"""The others run with the slow tests."""


@pytest.fixture(scope="module")
def sums(module_lab):
    return module_lab.run(module_lab.write("sums.py", SUMS), "--smoke")


def test_a_variant_that_is_wrong_on_one_rank_alone_is_wrong(sums):
    statuses = {name: sums.variant(name)["status"] for name in ("at_once", "wrong_on_rank_2")}
    assert statuses == {"at_once": Status.OK, "wrong_on_rank_2": Status.WRONG}


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
    assert all(part in message for part in SAYS[how]), message
    assert lab.none_left()


def test_more_ranks_than_there_may_be_are_refused(lab):
    finished = lab.run(lab.write("sums.py", SUMS), "--set", "ranks=65")
    assert finished.code == 2
    assert "ranks are a number from 1 to 64" in finished.stderr
