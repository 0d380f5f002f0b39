"""What ran in a recorded window, by name: where its time went, and how many of each there were."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from gpulab.model.intervals import clip, innermost, measure
from gpulab.model.trace import Event, Trace


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """A row: calls, and the seconds they took less those of the operations within them; of the window, or a step.

    `share` is of the window; rows of several threads or streams may sum to more than 1. `shapes` are those of the
    inputs, such as "64x32, 32", and empty for a kernel.
    """

    name: str
    calls: float
    self_s: float
    share: float
    shapes: str
    on_device: bool


def operations(trace: Trace, most: int = 40) -> list[Operation]:
    """The kernels and copies of a device, else the host's operations by name and shapes; the longest first.

    At most `most` of them, and one more for the rest.
    """
    on_device = trace.on_device
    self_s: dict[tuple[str, str], float] = defaultdict(float)
    calls: Counter[tuple[str, str]] = Counter()
    for one, seconds in _kernels(trace) if on_device else _host(trace):
        key = one.name, "" if on_device else _shapes(one.dims)
        self_s[key] += seconds
        calls[key] += 1

    def row(name: str, shapes: str, count: int, seconds: float) -> Operation:
        share = seconds / trace.window_s if trace.window_s else 0.0
        return Operation(name=name, calls=count, self_s=seconds, share=share, shapes=shapes, on_device=on_device)

    order = sorted(self_s, key=lambda key: (-self_s[key], key))
    rows = [row(*key, calls[key], self_s[key]) for key in order[:most]]
    if rest := order[most:]:
        rows.append(row(f"... {len(rest)} more", "", sum(calls[key] for key in rest), sum(self_s[key] for key in rest)))
    return rows


def kernels(trace: Trace) -> dict[str, int]:
    """How often each kernel or copy ran, else each operation of the host, nested ones too: to compare recordings."""
    if trace.on_device:
        return dict(Counter(one.name for one in trace.inside(trace.device)))
    return dict(Counter(one.name for some in trace.operations.values() for one in trace.inside(some)))


def _kernels(trace: Trace) -> Iterator[tuple[Event, float]]:
    for one in trace.inside(trace.device):
        yield one, measure(clip([one.span], *trace.window))


def _host(trace: Trace) -> Iterator[tuple[Event, float]]:
    for some in trace.operations.values():
        inside = list(trace.inside(some))
        own = [0.0] * len(inside)
        for start, end, index in innermost([one.span for one in inside]):
            own[index] += measure(clip([(start, end)], *trace.window))
        yield from zip(inside, own, strict=True)


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
