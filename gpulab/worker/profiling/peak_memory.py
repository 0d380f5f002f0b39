"""The most memory that one step allocates beyond what was there before it; on a GPU with a snapshot of it."""

from __future__ import annotations

import torch
from torch.profiler import ProfilerActivity, profile

from gpulab.worker.building.build import Build


def peak_bytes(build: Build, device: torch.device, snapshot: str) -> int:
    """The peak of one step, in bytes; a GPU's snapshot is written to a file of that name."""
    build.restore()
    with build.context():
        if device.type == "cuda":
            return _peak_on_gpu(build, device, snapshot)
        return _peak_on_cpu(build)


def _peak_on_gpu(build: Build, device: torch.device, snapshot: str) -> int:
    torch.cuda.memory._record_memory_history()
    try:
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        build.work.step()
        peak = int(torch.cuda.max_memory_allocated(device) - before)
        torch.cuda.memory._dump_snapshot(snapshot)  # type: ignore[no-untyped-call]
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    return peak


def _peak_on_cpu(build: Build) -> int:
    """By what torch's allocator tells the profiler: sizes of what it took and gave back, in order."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recording:
        build.work.step()
    total = peak = 0
    assert recording.profiler is not None
    changes = [event for event in recording.profiler.kineto_results.events() if event.name() == "[memory]"]
    for event in sorted(changes, key=lambda event: event.start_ns()):
        total += event.nbytes()
        peak = max(peak, total)
    return peak
