"""What ran in a recorded window, by name: where its time went, and how often each operation ran."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from gpulab.analysis.time_spans import clip, innermost, measure
from gpulab.analysis.trace import Trace, TraceEvent
from gpulab.protocol.operation import Operation

_COMPILED_GRAPH = "## Call CompiledFxGraph"


def operations(trace: Trace, most: int = 40) -> list[Operation]:
    """The kernels and copies of a device, else the host's operations by name and shapes; the longest first.

    At most `most` of them, and one more for the rest.
    """
    on_device = trace.on_device
    self_s: dict[tuple[str, str], float] = defaultdict(float)
    calls: Counter[tuple[str, str]] = Counter()
    for event, seconds in _kernel_times(trace) if on_device else _host_times(trace):
        key = event.name, "" if on_device else _shapes(event.dims)
        self_s[key] += seconds
        calls[key] += 1

    def row(name: str, shapes: str, count: int, seconds: float, rows: int = 1) -> Operation:
        share = seconds / trace.window_s if trace.window_s else 0.0
        return Operation(
            name=name, calls=count, self_s=seconds, share=share, shapes=shapes, on_device=on_device, rows=rows
        )

    order = sorted(self_s, key=lambda key: (-self_s[key], key))
    table = [row(*key, calls[key], self_s[key]) for key in order[:most]]
    if rest := order[most:]:
        table.append(row("...", "", sum(calls[key] for key in rest), sum(self_s[key] for key in rest), len(rest)))
    return table


def call_counts(trace: Trace) -> dict[str, int]:
    """How often each kernel or copy ran, else each operation of the host, nested ones too: to compare recordings.

    Marks of compiled graphs are no operations: only a recording without shapes has them among these.
    """
    if trace.on_device:
        return dict(Counter(event.name for event in trace.inside(trace.device)))
    names = (event.name for events in trace.operations.values() for event in trace.inside(events))
    return dict(Counter(name for name in names if not name.startswith(_COMPILED_GRAPH)))


def _kernel_times(trace: Trace) -> Iterator[tuple[TraceEvent, float]]:
    for event in trace.inside(trace.device):
        yield event, measure(clip([event.span], *trace.window))


def _host_times(trace: Trace) -> Iterator[tuple[TraceEvent, float]]:
    """Each operation with its own seconds, without those of the operations within it."""
    for events in trace.operations.values():
        inside = list(trace.inside(events))
        self_s = [0.0] * len(inside)
        for start, end, index in innermost([event.span for event in inside]):
            self_s[index] += measure(clip([(start, end)], *trace.window))
        yield from zip(inside, self_s, strict=True)


def _shapes(dims: Any) -> str:
    """Those of tensors and lists of tensors: [[64, 32], [], [[8], [8]]] is "64x32, [8, 8]"."""
    if not isinstance(dims, list):
        return ""
    return ", ".join(filter(None, map(_shape, dims)))


def _shape(dim: Any) -> str:
    if not isinstance(dim, list) or not dim:
        return ""
    if isinstance(dim[0], list):
        return f"[{_shapes(dim)}]"
    return "x".join(map(str, dim))
