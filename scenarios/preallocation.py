"""Preallocation: reuse buffers on a CPU; on a GPU the caching allocator does it already.

**In short:** new memory is expensive where it comes from the system, and PyTorch on a GPU asks the system only once.

```text
               one step on a CPU         on a GPU
fresh          ▒▒▒▒▒▒▒██▒▒▒▒▒▒▒██        ████
staged_once    ██▒▒▒▒▒▒▒██               ████
out_argument   ████                      ████
cache_emptied  needs a GPU               ▒▒▒▒▒████
               ▒ memory from the system or driver
               █ the copy, and the multiplication
               not to scale
```

| variant | what changes | expected | why |
|---|---|---|---|
| `fresh` | two new tensors each step | baseline, 370 us (H100) | on a CPU each one is a page fault for every 4 KiB |
| `staged_once` | the copy goes into a buffer that exists | *same* on a GPU, 368 us (H100) | the allocator hands out the block of the step before |
| `out_argument` | the result too, by `out=` | *same* on a GPU, 368 us (H100) | nothing is allocated; on a CPU no page is cleared |
| `cache_emptied` | `torch.cuda.empty_cache()` in every step | 0.43x (H200, a quick run) | both tensors come from the driver again |

## On a CPU

The C library takes large blocks straight from the operating system and gives them straight back.
The system clears each page when it is first touched: a page fault, which costs far more than the
arithmetic. Smaller blocks come from a heap that is kept: below 32 MiB, to which glibc raises its
threshold at most, there is no effect. (gpulab keeps freed memory in the process for all other
lessons, as a tuned program would; here the allocator has its default settings.)

## On a GPU

PyTorch's caching allocator keeps freed blocks and hands the same ones out again. That costs the
host little and the device nothing. It may show where the host is the slower side (`--set mib=1`).

`cache_emptied` gives all unused blocks back, so the driver has to allocate each tensor again, and
waits for the device when it frees one. In a training loop that call is a common mistake: PyTorch
could have reused those blocks. It frees no memory for PyTorch, except where it reduces
fragmentation.

## What the sources say

The 210 ms of `aten::empty_strided` that the performance basics and the quick-start guide removed
were most likely one-off: the first allocation of a process also sets CUDA up. Their faster version
drew no random numbers either, which is less work.

Pitfall: a reused buffer can be overwritten while something still reads it.
"""

import torch

from gpulab import MiB, Scenario, Work

scenario = Scenario(
    topic="data movement",
    roof="device memory",
    params={"mib": 256},
    cpu={"mib": 33},
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
