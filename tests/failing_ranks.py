"""Scenarios of several ranks: sums, one of them wrong on one rank alone, and ranks that fail."""

SUMS = '''
"""Sums over ranks."""
import torch
import torch.distributed as dist
from gpulab import Scenario, Work
scenario = Scenario("ranks", params={"ranks": 3, "tensors": 4}, ranks="ranks")

def tensors_of(lab, count):
    given = [torch.randn(100, device=lab.device) for _ in range(count)]
    return given, [torch.empty_like(each) for each in given]

@scenario.variant
def one_by_one(lab, tensors):
    given, sums = tensors_of(lab, tensors)
    def step():
        for tensor, out in zip(given, sums):
            out.copy_(tensor)
            dist.all_reduce(out, group=lab.group)
    return Work(step, inputs=given, output=sums)

def flat(lab, tensors, forgets):
    given, sums = tensors_of(lab, tensors)
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
def wrong_on_the_last(lab, tensors):
    return flat(lab, tensors, forgets=lab.ranks - 1)
'''
FAULTS = '''
"""One rank fails."""
import os, time
import torch
import torch.distributed as dist
from gpulab import Scenario, Work
scenario = Scenario(
    "ranks", params={"how": "none", "ranks": 3}, ranks="ranks", env={"GPULAB_RANK_TIMEOUT": "3"}
)

@scenario.variant
def sums(lab, how):
    given = torch.randn(100, device=lab.device)
    out = torch.empty_like(given)
    calls = [0]
    def step():
        calls[0] += 1
        if calls[0] == 12 and lab.rank == lab.ranks - 1:
            if how == "exits":
                os._exit(0)
            if how == "is_killed":
                os.kill(os.getpid(), 9)
            if how == "raises":
                raise ValueError("no more batches")
            if how == "has_no_memory":
                torch.empty(1 << 50, device=lab.device)
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
    "exits": ("rank LAST ended: it exited with code 0",),
    "is_killed": ("rank LAST ended: SIGKILL",),
    "raises": ("rank LAST: ValueError: no more batches (line ",),
    "has_no_memory": ("rank LAST: ", "memory"),
    "hangs": ("rank LAST did not come to all_reduce", "the last it called is all_reduce", "line "),
    "broadcasts": ("rank LAST called broadcast", "rank 0 all_reduce"),
}
"""Parts of what is said of the last rank, by how it fails."""


def assert_named(how, message, last):
    assert all(part.replace("LAST", str(last)) in message for part in SAYS[how]), message
