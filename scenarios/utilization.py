"""Utilization: nvidia-smi's 100 % says that a kernel is running, not that the GPU is used.

**In short:** one block on one of 132 SMs makes a GPU 100 % busy, so look at the share of a roof instead.

```text
                           time ────────────────────────▶
small_kernels   SM 1       ████ ████ ████ ████ ████ ████
                SM 2..132  ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
one_block       SM 1       █████████████████████████████
                SM 2..132  ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
full_grid       SM 1       █
                SM 2..132  █
                           █ works   ░ has nothing to do
```

| variant | what changes | expected (H200) | why |
|---|---|---|---|
| `small_kernels` | 32 launches of one block each | baseline, 7.17 ms: *busy* 99 %, *SM %* 0.75 | one block works at a time |
| `one_block` | one launch of one block | *same*, 1.01x: *busy* 99 %, *SM %* 0.75 | launches were hidden: each kernel is longer than its launch |
| `full_grid` | one launch, a block for each piece | 114x, 62.6 us | all SMs have blocks, and memory is the limit |

## What busy counts

`utilization.gpu` of nvidia-smi and NVML is the share of time in which at least one kernel was
executing, whatever its size. One block on one streaming multiprocessor (SM) is 0.8 % of them.
The performance basics say that utilization above 80 % is good: it only shows that the device is
rarely idle.

## Why one block is slow

All variants add up the same squares with the same kernel, in pieces of 32 KiB. One block has one
piece under way, and memory answers after half a microsecond or more:

    32 KiB / 0.5 us = 65 GB/s at most, about 2 % of an H100

An H200 reached 38 GB/s, 0.9 %. What is missing is parallelism, not launches. Shorter kernels would
add gaps between them, and lower even *busy*.

## What to look at instead

*SM %* is the share of time in which SMs had work, averaged over all SMs; *DRAM %* is the share of
the memory bandwidth. Hopper and newer count them; on other data-center GPUs DCGM does (SM activity
is field 1002). Power is a rough hint on any device.

SM activity is necessary, not sufficient: an SM with one waiting warp counts as active. The share of
a roof says how well the device is used. For a training step it is useful FLOP/s over the device's
peak (MFU, model FLOPs utilization).

A *busy* share far below 100 % does say something: the device waits for the host, for data or for
other GPUs. The lesson needs CUDA and Triton, where the caller chooses the number of blocks.
"""

import torch

from gpulab import KiB, MiB, Scenario, Work

try:
    import triton
    import triton.language as tl
except ImportError:  # the scenario says that it needs it
    triton = None

scenario = Scenario(
    topic="data movement",
    needs=("cuda", "triton"),
    roof="device memory",
    params={"mib": 256, "launches": 32},
    smoke={"mib": 4, "launches": 4},
    item="piece",
    claim="performance basics: GPU utilization > 80 % is good",
    no_effect_reason="one block works at a time in either case, however many launches it takes",
    ladder=True,
    terms=("sm", "multiprocessor", "nsys", "nsight", "nvidia-smi", "nvml", "gpu busy"),
)
_PIECE, _WARPS = 32 * KiB // 4, 32


@scenario.variant
def small_kernels(lab, mib, launches):
    """Many launches of one block each, one after the other."""
    return _sums(lab, mib, launches, blocks=1)


@scenario.variant
def one_block(lab, mib):
    """One launch of one block, which goes through all pieces."""
    return _sums(lab, mib, launches=1, blocks=1)


@scenario.variant
def full_grid(lab, mib):
    """One launch with a block for each piece."""
    return _sums(lab, mib, launches=1, blocks=None)


if triton is not None:

    @triton.jit
    def _squares(data, sums, pieces, PIECE: tl.constexpr):
        """Each block takes every so many-th piece, from the load to the store of its sum."""
        for piece in range(tl.program_id(0), pieces, tl.num_programs(0)):
            values = tl.load(data + piece * PIECE + tl.arange(0, PIECE))
            tl.store(sums + piece, tl.sum(values * values, axis=0))


def _sums(lab, mib, launches, blocks):
    pieces = mib * MiB // 4 // _PIECE
    data = torch.randn(pieces, _PIECE, device=lab.device)
    data *= torch.rand(pieces, 1, device=lab.device)  # or all sums would be nearly equal
    sums = torch.empty(pieces, device=lab.device)
    parts = list(zip(data.chunk(launches), sums.chunk(launches), strict=True))

    def step():
        with lab.useful():
            for part, out in parts:
                _squares[(blocks or len(part),)](
                    part, out, len(part), PIECE=_PIECE, num_warps=_WARPS
                )
        return sums

    return Work(
        step, bytes=data.nbytes, flops=2 * data.numel(), dtype="fp32", items=pieces, inputs=data
    )
