"""What one variant needs of the device's memory, in a process where nothing else is built."""

from __future__ import annotations

from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from gpulab.protocol.events import MemoryUsed
from gpulab.scenario import Variant
from gpulab.worker.building.build import Build, Builder
from gpulab.worker.process.memory import release

_SECOND_STEP = "gpulab.second_step"


def build_and_weigh(builder: Builder, variant: Variant) -> tuple[Build, MemoryUsed]:
    """A build after its first step, and the memory that it takes; whatever the scenario raises passes."""
    if builder.device.type == "cuda":
        return _on_gpu(builder, variant)
    return _on_cpu(builder, variant)


def _on_gpu(builder: Builder, variant: Variant) -> tuple[Build, MemoryUsed]:
    device = builder.device
    torch._C._cuda_clearCublasWorkspaces()  # each variant has its own
    release(device)
    allocated, reserved = torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)
    torch.cuda.reset_peak_memory_stats(device)
    build = builder.build(variant)
    try:
        builder.first_step(build)
        held = torch.cuda.memory_allocated(device)
        most_reserved = torch.cuda.max_memory_reserved(device)
        torch.cuda.reset_peak_memory_stats(device)
        builder.step(build)
        used = MemoryUsed(
            variant=variant.name,
            held_bytes=max(0, held - allocated - build.state_bytes),
            peak_bytes=max(0, torch.cuda.max_memory_allocated(device) - allocated - build.state_bytes),
            reserved_bytes=max(0, max(most_reserved, torch.cuda.max_memory_reserved(device)) - reserved),
        )
    except BaseException:
        build.close()
        raise
    return build, used


def _on_cpu(builder: Builder, variant: Variant) -> tuple[Build, MemoryUsed]:
    """By what torch's allocator tells the profiler: sizes of what it took and gave back, in order."""
    build = None
    try:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recording:
            build = builder.build(variant)
            builder.first_step(build)
            with record_function(_SECOND_STEP):
                builder.step(build)
    except BaseException:
        if build is not None:
            build.close()
        raise
    held, peak = _held_and_peak(recording)
    copies = build.state_bytes  # of its state, which the lab keeps
    return build, MemoryUsed(variant=variant.name, held_bytes=max(0, held - copies), peak_bytes=max(0, peak - copies))


def _held_and_peak(recording: profile) -> tuple[int, int]:
    """Bytes that were allocated when the second step began, and at most from then on."""
    assert recording.profiler is not None
    results: Any = recording.profiler.kineto_results
    changes, begins = [], 0
    for event in results.events():
        name = event.name()
        if name == "[memory]":
            changes.append((event.start_ns(), event.nbytes()))
        elif name == _SECOND_STEP:
            begins = event.start_ns()
    held = sum(size for at, size in changes if at < begins)
    total = peak = held
    for at, size in sorted(changes):
        if at >= begins:
            total += size
            peak = max(peak, total)
    return held, peak
