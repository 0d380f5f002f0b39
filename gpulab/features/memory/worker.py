"""What one variant needs of the device's memory: its peak, in a process where nothing else is
built.
"""

from __future__ import annotations

from contextlib import ExitStack

import torch
from torch.autograd.profiler import profile, record_function

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
    weigh = _on_gpu if builder.device.type == "cuda" else _on_cpu
    with ExitStack() as closed_on_error:
        build, held, peak, reserved = weigh(builder, variant, closed_on_error)
        closed_on_error.pop_all()
    copies = build.state_bytes  # of its state, which the lab keeps
    return build, MemoryUsed(
        variant=variant.name,
        held=max(0, held - copies),
        peak=max(0, peak - copies),
        reserved=reserved,
    )


_Weighed = tuple[Build, int, int, int | None]
"""What was built, and bytes held, at the peak, and reserved."""


def _on_gpu(builder: Builder, variant: Variant, closed_on_error: ExitStack) -> _Weighed:
    device = builder.device
    torch._C._cuda_clearCublasWorkspaces()  # each variant has its own
    release_memory(device)
    allocated = torch.cuda.memory_allocated(device)
    reserved = torch.cuda.memory_reserved(device)
    torch.cuda.reset_peak_memory_stats(device)
    build = builder.build(variant)
    closed_on_error.callback(build.close)
    builder.first_step(build)
    held = torch.cuda.memory_allocated(device)
    most_reserved = torch.cuda.max_memory_reserved(device)
    torch.cuda.reset_peak_memory_stats(device)
    builder.step(build)
    peak = torch.cuda.max_memory_allocated(device)
    most_reserved = max(most_reserved, torch.cuda.max_memory_reserved(device))
    return build, held - allocated, peak - allocated, max(0, most_reserved - reserved)


def _on_cpu(builder: Builder, variant: Variant, closed_on_error: ExitStack) -> _Weighed:
    """By what torch's allocator tells the profiler: sizes of what it took and gave back, in order;
    from the second step on at most.
    """
    with profile(profile_memory=True, use_kineto=True) as recording:
        build = builder.build(variant)
        closed_on_error.callback(build.close)
        builder.first_step(build)
        with record_function(_SECOND_STEP):
            builder.step(build)
    events = recording.kineto_results.events()
    begins = max(event.start_ns() for event in events if event.name() == _SECOND_STEP)
    changes = [(event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]"]
    held = sum(size for at, size in changes if at < begins)
    total = peak = held
    for at, size in sorted(changes):
        if at >= begins:
            total += size
            peak = max(peak, total)
    return build, held, peak, None
