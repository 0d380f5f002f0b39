"""The operations of a recording as trees: what each called, launched on a device, and allocated."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gpulab.features.goodput.trace import Thread, Trace, TraceEvent
from gpulab.stats.time_spans import Span, innermost

_SEQUENCE, _FORWARD_THREAD = "Sequence number", "Fwd thread id"


@dataclass(slots=True, eq=False)
class Node:
    """One operation. `self_s` is its time within the window without the operations in it.

    `kernels` are what it launched itself, on a device, and `memory_bytes` what it allocated itself,
    less what it freed.
    """

    event: TraceEvent
    parent: Node | None
    self_s: float = 0.0
    total_s: float = 0.0
    memory_bytes: int = 0
    children: list[Node] = field(default_factory=list)
    kernels: list[TraceEvent] = field(default_factory=list)
    device_s: float = 0.0

    @property
    def name(self) -> str:
        return self.event.name

    @property
    def ancestors(self) -> Iterator[Node]:
        """The innermost first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    @property
    def descendants(self) -> Iterator[Node]:
        """Those that it called, each before those within it."""
        for child in self.children:
            yield child
            yield from child.descendants

    @property
    def repeats_its_caller(self) -> bool:
        """Return whether it is all that an operation of the same name called: torch's own table
        takes both for one.
        """
        caller = self.parent
        return caller is not None and caller.name == self.name and len(caller.children) == 1

    @property
    def sequence(self) -> int | None:
        """The number that ties an operation of the backward pass to that of the forward pass."""
        number = self.event.arguments.get(_SEQUENCE)
        return number if isinstance(number, int) and number >= 0 else None

    @property
    def is_backward(self) -> bool:
        """Return whether autograd called it for an operation of the forward pass."""
        return bool(self.event.arguments.get(_FORWARD_THREAD))


@dataclass(frozen=True)
class Forest:
    """The operations of the window, by their start, and the kernels that none of them launched."""

    nodes: Sequence[Node]
    unowned: Sequence[TraceEvent]


def forest(trace: Trace) -> Forest:
    """Every operation of the window with what it called, launched and allocated."""
    threads = {
        thread: _Thread(trace, sorted(trace.inside(events), key=_outermost_first))
        for thread, events in trace.operations.items()
    }
    unowned = _launch(trace, threads)
    on_device = trace.on_device
    for allocation in trace.allocations:
        thread = threads.get(allocation.thread)
        node = thread.at(allocation.at) if thread else None
        if node is not None and allocation.on_device == on_device:
            node.memory_bytes += allocation.bytes
    nodes = [node for thread in threads.values() for node in thread.nodes]
    nodes.sort(key=lambda node: _outermost_first(node.event))
    return Forest(nodes, unowned)


def _within(span: Span, window: Span) -> float:
    """The part of its seconds that is in the window."""
    return max(0.0, min(span[1], window[1]) - max(span[0], window[0]))


def _outermost_first(event: TraceEvent) -> tuple[float, float]:
    return event.start, -event.end


class _Thread:
    """The operations of one thread, outer ones before those within them."""

    def __init__(self, trace: Trace, events: Sequence[TraceEvent]) -> None:
        self.nodes: list[Node] = []
        enclosing: list[Node] = []
        for event in events:
            while enclosing and enclosing[-1].event.end <= event.start:
                enclosing.pop()
            node = Node(event, enclosing[-1] if enclosing else None)
            node.total_s = _within(event.span, trace.window)
            if node.parent:
                node.parent.children.append(node)
            self.nodes.append(node)
            enclosing.append(node)
        self._pieces = innermost([event.span for event in events])
        self._starts = [start for start, _, _ in self._pieces]
        for start, end, index in self._pieces:
            self.nodes[index].self_s += _within((start, end), trace.window)

    def at(self, instant: float) -> Node | None:
        """The innermost operation at an instant."""
        index = bisect_right(self._starts, instant) - 1
        if index < 0 or instant > self._pieces[index][1]:
            return None
        return self.nodes[self._pieces[index][2]]


def _launch(trace: Trace, threads: dict[Thread, _Thread]) -> list[TraceEvent]:
    """Give each operation the kernels and copies that it launched; those that none did."""
    launches = {
        call.correlation: call
        for calls in trace.calls.values()
        for call in calls
        if call.correlation is not None
    }
    unowned = []
    for event in trace.inside(trace.device):
        launch = launches.get(event.correlation) if event.correlation is not None else None
        thread = threads.get(launch.thread) if launch else None
        node = thread.at(launch.start) if thread and launch else None
        if node is None:
            unowned.append(event)
            continue
        node.kernels.append(event)
        node.device_s += _within(event.span, trace.window)
    return unowned
