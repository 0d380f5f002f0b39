"""The operations of a recording as trees: what each called, launched on a device, and allocated,
and which line of the program called it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gpulab.stats.time_spans import Span, innermost
from gpulab.traces.trace import CALLER, Thread, Trace, TraceEvent

_SEQUENCE, _NO_NUMBER = "Sequence number", -1
"""What ties an operation of the backward pass to that of the forward pass."""
_FORWARD_THREAD = "Fwd thread id"


class Caller(NamedTuple):
    """`line` is such as train.py:42, `module` such as Net.layers.0.linear."""

    line: str | None = None
    module: str | None = None


UNKNOWN = Caller()


@dataclass(slots=True, eq=False)
class Node:
    """One operation. `self_s` is its time within the window without the operations in it.

    `kernels` are what it launched itself on a device, for `device_s`, and `memory_bytes` what it
    allocated itself, less what it freed, where that was recorded. `device_total_s` is with those of
    the operations within it.
    """

    event: TraceEvent
    parent: Node | None
    caller: Caller
    self_s: float = 0.0
    total_s: float = 0.0
    device_s: float = 0.0
    device_total_s: float = 0.0
    memory_bytes: int | None = None
    children: list[Node] = field(default_factory=list)
    kernels: list[TraceEvent] = field(default_factory=list)

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


@dataclass(frozen=True)
class Forest:
    """The operations of the window, by their start, and the kernels that none of them launched."""

    nodes: Sequence[Node]
    unowned: Sequence[TraceEvent]


def forest(trace: Trace) -> Forest:
    """Every operation of the window with what it called, launched and allocated."""
    threads = {thread: _Thread(trace, thread) for thread in trace.operations}
    unowned = _launch(trace, threads)
    nodes = [node for thread in threads.values() for node in thread.nodes]
    nodes.sort(key=lambda node: _outermost_first(node.event))
    if trace.allocations:
        _allocate(trace, threads)
    if trace.callers:
        _take_callers_of_forward(nodes)
    for node in nodes:
        node.device_total_s = node.device_s
    for node in reversed(nodes):  # those within an operation come after it
        if node.parent is not None:
            node.parent.device_total_s += node.device_total_s
    return Forest(nodes, unowned)


def _within(span: Span, window: Span) -> float:
    """The part of its seconds that is in the window."""
    return max(0.0, min(span[1], window[1]) - max(span[0], window[0]))


def _outermost_first(event: TraceEvent) -> tuple[float, float]:
    return event.start, -event.end


class _Thread:
    """The operations of one thread, outer ones before those within them."""

    def __init__(self, trace: Trace, thread: Thread) -> None:
        operations = trace.inside(trace.operations[thread])
        marks = (mark for mark in trace.callers if mark.thread == thread)
        self.nodes: list[Node] = []
        enclosing: list[tuple[float, Node | None, Caller]] = []
        for event in sorted((*marks, *operations), key=_outermost_first):
            while enclosing and enclosing[-1][0] <= event.start:
                enclosing.pop()
            _, parent, caller = enclosing[-1] if enclosing else (0.0, None, UNKNOWN)
            if event.name.startswith(CALLER):
                enclosing.append((event.end, parent, _caller(event.name)))
                continue
            node = Node(event, parent, caller, total_s=_within(event.span, trace.window))
            if parent is not None:
                parent.children.append(node)
            self.nodes.append(node)
            enclosing.append((event.end, node, caller))
        self._pieces = innermost([node.event.span for node in self.nodes])
        self._starts = [start for start, _, _ in self._pieces]
        for start, end, index in self._pieces:
            self.nodes[index].self_s += _within((start, end), trace.window)

    def at(self, instant: float) -> Node | None:
        """The innermost operation at an instant."""
        index = bisect_right(self._starts, instant) - 1
        if index < 0 or instant > self._pieces[index][1]:
            return None
        return self.nodes[self._pieces[index][2]]


def _caller(mark: str) -> Caller:
    line, _, module = mark.removeprefix(CALLER).rpartition("|")
    return Caller(line or None, module or None)


def _take_callers_of_forward(nodes: Sequence[Node]) -> None:
    """Let what autograd calls in the backward pass have the caller of its operation of the forward
    pass: on a device it runs in a thread without a line of the program.
    """
    forward: dict[Any, Caller] = {}
    for node in nodes:
        number = node.event.arguments.get(_SEQUENCE, _NO_NUMBER)
        if _is_backward(node):
            node.caller = forward.get(number, node.caller)
            continue
        if node.parent and any(map(_is_backward, node.ancestors)):
            node.caller = node.parent.caller
        if node.caller != UNKNOWN and number != _NO_NUMBER:
            forward[number] = node.caller  # of those that have a number, the last made the node


def _is_backward(node: Node) -> bool:
    """Return whether autograd called it for an operation of the forward pass."""
    return bool(node.event.arguments.get(_FORWARD_THREAD))


def _launch(trace: Trace, threads: dict[Thread, _Thread]) -> list[TraceEvent]:
    """Give each operation the kernels and copies that it launched; those that none did."""
    launches: dict[int | None, TraceEvent] = {
        call.correlation: call
        for calls in trace.calls.values()
        for call in calls
        if call.correlation is not None
    }
    unowned = []
    for event in trace.inside(trace.device):
        launch = launches.get(event.correlation)
        node = launch and _node_at(threads, launch.thread, launch.start)
        if not node:
            unowned.append(event)
            continue
        node.kernels.append(event)
        node.device_s += _within(event.span, trace.window)
    return unowned


def _node_at(threads: dict[Thread, _Thread], thread: Thread, instant: float) -> Node | None:
    if thread not in threads:
        return None
    return threads[thread].at(instant)


def _allocate(trace: Trace, threads: dict[Thread, _Thread]) -> None:
    for thread in threads.values():
        for each in thread.nodes:
            each.memory_bytes = 0
    on_device = trace.on_device
    for allocation in trace.allocations:
        node = _node_at(threads, allocation.thread, allocation.at)
        if node is not None and allocation.on_device == on_device:
            node.memory_bytes = (node.memory_bytes or 0) + allocation.bytes
