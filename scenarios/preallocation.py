"""Preallocation: write into buffers that exist, do not ask for new ones in every step.

Each step stages a batch and scales it. Written the easy way both results are fresh tensors, and the memory
for them is asked for and given back every time. What that costs is the allocator's business:

On a CPU the C library takes large blocks straight from the system and gives them straight back. The system
hands out each page when it is first touched and clears it before: a page fault for every 4 KiB, far dearer
than the arithmetic. (The lab keeps freed memory in the process for all other lessons, as a tuned program
would; here the allocator is left as it comes.) On a GPU torch's caching allocator keeps freed blocks and
hands the same one out again, so in the steady state a fresh tensor costs next to nothing; what a profile
shows of `aten::empty_strided` there is mostly the very first step.

It does not help where tensors are small (they come from a list of free blocks), and a buffer that is
written again while somebody still reads it is a bug that fresh tensors cannot have.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="data movement",
    roof="device memory",
    params={"mib": 256},
    cpu={"mib": 64},
    smoke={"mib": 1},
    ladder=True,
    env={"MALLOC_MMAP_THRESHOLD_": None, "MALLOC_TRIM_THRESHOLD_": None, "MALLOC_TOP_PAD_": None},
    no_effect_reason="the allocator keeps its blocks: after the first step nothing is asked of the system",
    claim="~2x, 210 ms of allocation a batch removed",
)


@scenario.variant
def fresh(lab, mib):
    """Two fresh tensors each step: the staged batch and the result."""
    batch, _, _ = _tensors(lab, mib)
    return _work(lambda: batch.clone() * 2, batch)


@scenario.variant
def staged_once(lab, mib):
    """The batch is copied into a buffer that exists; the result is fresh."""
    batch, staged, _ = _tensors(lab, mib)
    return _work(lambda: staged.copy_(batch) * 2, batch)


@scenario.variant
def out_argument(lab, mib):
    """The result goes into a buffer as well, by out=: nothing is allocated."""
    batch, staged, result = _tensors(lab, mib)
    return _work(lambda: torch.mul(staged.copy_(batch), 2, out=result), batch)


def _tensors(lab, mib):
    batch = torch.rand(mib * MiB // 4, device=lab.device)
    return batch, torch.zeros_like(batch), torch.zeros_like(batch)


def _work(step, batch):
    return Work(step, bytes=4 * batch.nbytes, flops=batch.numel(), dtype="fp32", items=batch.numel(), inputs=batch)
