"""What one variant needs of the device's memory, in a process where nothing else is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from gpulab.protocol.events import MemoryUsed
from gpulab.scenario import Variant
from gpulab.worker.building.build import Build, Builder
from gpulab.worker.process.memory import release


@dataclass
class _Change:
    """Bytes that a piece of work left allocated, and the most that it had at a time."""

    left: int = 0
    most: int = 0


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
        held = max(0, _change(recording).left - build.state_bytes)
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recording:
            builder.step(build)
        used = MemoryUsed(variant=variant.name, held_bytes=held, peak_bytes=held + _change(recording).most)
    except BaseException:
        if build is not None:
            build.close()
        raise
    return build, used


def _change(recording: profile) -> _Change:
    assert recording.profiler is not None
    results: Any = recording.profiler.kineto_results
    change = _Change()
    events = [event for event in results.events() if event.name() == "[memory]"]
    for event in sorted(events, key=lambda event: event.start_ns()):
        change.left += event.nbytes()
        change.most = max(change.most, change.left)
    return change
