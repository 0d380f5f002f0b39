"""What one variant needs of the device's memory: its peak, in a process where nothing else is
built.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from gpulab.engine.build.build import Build, Builder
from gpulab.engine.processes.device import release_memory
from gpulab.features.memory.events import MemoryUsed
from gpulab.scenario import Variant


def write_snapshot(build: Build, file: str) -> None:
    """Write what a step of a GPU allocates, for pytorch.org/memory_viz."""
    build.restore()
    torch.cuda.memory._record_memory_history()
    try:
        with build.context():
            build.work.step()
        torch.cuda.memory._dump_snapshot(file)  # type: ignore[no-untyped-call]
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)


_SECOND_STEP = "gpulab.second_step"


def build_and_weigh(builder: Builder, variant: Variant) -> tuple[Build, MemoryUsed]:
    """A build after its first step, and the memory that it takes. Raises what the scenario
    raises.
    """
    if builder.device.type == "cuda":
        return _on_gpu(builder, variant)
    return _on_cpu(builder, variant)


def _on_gpu(builder: Builder, variant: Variant) -> tuple[Build, MemoryUsed]:
    device = builder.device
    torch._C._cuda_clearCublasWorkspaces()  # each variant has its own
    release_memory(device)
    allocated = torch.cuda.memory_allocated(device)
    reserved = torch.cuda.memory_reserved(device)
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
            held=max(0, held - allocated - build.state_bytes),
            peak=max(0, torch.cuda.max_memory_allocated(device) - allocated - build.state_bytes),
            reserved=max(0, max(most_reserved, torch.cuda.max_memory_reserved(device)) - reserved),
        )
    except BaseException:
        build.close()
        raise
    return build, used


def _on_cpu(builder: Builder, variant: Variant) -> tuple[Build, MemoryUsed]:
    """By what torch's allocator tells the profiler: sizes of what it took and gave back, in
    order.
    """
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
    return build, MemoryUsed(
        variant=variant.name, held=max(0, held - copies), peak=max(0, peak - copies)
    )


def _held_and_peak(recording: profile) -> tuple[int, int]:
    """Bytes that were allocated when the second step began, and at most from then on."""
    assert recording.profiler is not None
    results: Any = recording.profiler.kineto_results
    changes = []
    begins = 0
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
