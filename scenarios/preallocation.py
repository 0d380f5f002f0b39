"""Preallocation: reuse buffers on a CPU; on a GPU the caching allocator does it already.

Each step copies a batch into a staging tensor and doubles it. In the simplest code both results are
new tensors, so memory is allocated and freed in every step. What that costs depends on the
allocator.

On a CPU the C library takes large blocks straight from the operating system and gives them straight
back. The system clears each page when it is first touched: a page fault for every 4 KiB, which
costs far more than the arithmetic. (gpulab keeps freed memory in the process for all other lessons,
as a tuned program would; here the allocator has its default settings.) Smaller blocks come from a
heap that is kept: below 32 MiB, to which glibc raises its threshold at most, there is no effect.

On a GPU expect *same* for the first three variants (an H100 took 370, 368 and 368 us). PyTorch's
caching allocator keeps freed blocks and hands the same ones out again, which costs the host little
and the device nothing. It may show where the host is the slower side (`--set mib=1`). The 210 ms of
`aten::empty_strided` that the performance basics and the quick-start guide removed were most likely
one-off: the first allocation of a process also sets CUDA up. Their faster version drew no random
numbers either, which is less work.

`cache_emptied` shows what asking the driver costs, by asking it in every step:
`torch.cuda.empty_cache()` gives all unused blocks back, so the driver has to allocate each tensor
again, and waits for the device when it frees one. In a training loop that call is a common mistake:
PyTorch could have reused those blocks anyway, and the call frees no memory for it, except where it
reduces fragmentation.

Pitfall: a reused buffer can be overwritten while something still reads it.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="data movement",
    roof="device memory",
    params={"mib": 256},
    cpu={"mib": 40},
    smoke={"mib": 1},
    sweep={"mib": (1, 4, 16, 64, 256)},
    ladder=True,
    env={"MALLOC_MMAP_THRESHOLD_": None, "MALLOC_TRIM_THRESHOLD_": None, "MALLOC_TOP_PAD_": None},
    item="element",
    no_effect_reason="the allocator keeps its blocks: after the first step nothing is allocated anew",
    claim=(
        "performance basics and quick-start guide: ~2x, 210 ms of aten::empty_strided a batch "
        "removed"
    ),
    terms=("caching allocator", "malloc", "out="),
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


@scenario.variant(needs=("cuda",))
def cache_emptied(lab, mib):
    """Two fresh tensors, after torch.cuda.empty_cache(): both come from the driver, in every
    step.
    """
    batch, _, _ = _tensors(lab, mib)

    def step():
        torch.cuda.empty_cache()
        return batch.clone() * 2

    return _work(step, batch)


def _tensors(lab, mib):
    batch = torch.rand(mib * MiB // 4, device=lab.device)
    return batch, torch.zeros_like(batch), torch.zeros_like(batch)


def _work(step, batch):
    return Work(
        step,
        bytes=4 * batch.nbytes,
        flops=batch.numel(),
        dtype="fp32",
        items=batch.numel(),
        inputs=batch,
    )
