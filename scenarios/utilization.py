"""Utilization: nvidia-smi's 100 % says that a kernel is running, not that the GPU is used.

`utilization.gpu` of nvidia-smi and NVML is the share of time in which at least one kernel was
executing, whatever its size. One block on one of 132 streaming multiprocessors (SMs) makes it 100
%, at 0.8 % of the SMs. The performance basics say that utilization above 80 % is good: it only
shows that the device is rarely idle.

All variants add up the same squares with the same kernel, in pieces of 32 KiB. `small_kernels`
launches it many times with a single block, `one_block` once with a single block that goes through
all pieces, `full_grid` once with a block for each piece. One block has 32 KiB under way at a time,
and memory answers after half a microsecond or more: that is 65 GB/s at most, about 2 % of what an
H100 can (an H200 reached 38 GB/s, 0.9 %). The first two take about the same time, since each kernel
takes longer than launching it: what is missing is parallelism, not launches. Shorter kernels would
add gaps between them, and lower even *busy*. Measured here on an H200: both are 99 % *busy*, *SM %*
is 0.75 %, and `full_grid` is 114x as fast.

Look at the solo run of each variant: *busy* is what nvidia-smi calls utilization; *SM %* is the
share of time in which SMs had work, averaged over all SMs, and *DRAM %* the share of the memory
bandwidth. They are counted on Hopper and newer; on other data-center GPUs DCGM has them (SM
activity is field 1002). Power is a rough hint on any device.

Even SM activity is necessary, not sufficient, since an SM with one waiting warp counts as active.
The share of a roof says how well the device is used; for a whole training step it is the useful
FLOP/s over the device's peak (MFU, model FLOPs utilization). A busy share far below 100 % does say
something: the device waits for the host, for data or for other GPUs. The lesson needs a CUDA device
and Triton, where the caller chooses the number of blocks.
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
    terms=("nsys", "nsight", "nvidia-smi", "nvml", "gpu busy"),
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
