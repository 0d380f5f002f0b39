"""Which line of a program, in which of its modules, called the operations of a recording: from
spans that `gpulab.features.goodput.marks` writes around calls.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import NamedTuple

from gpulab.features.goodput.trace import CALLER, Thread, Trace
from gpulab.features.goodput.tree import Forest, Node
from gpulab.stats.time_spans import innermost


class Caller(NamedTuple):
    """`line` is such as train.py:42, `module` such as Net.layers.0.linear."""

    line: str | None = None
    module: str | None = None


def callers_of(trace: Trace, woods: Forest) -> dict[Node, Caller]:
    """The caller of each operation for which it is known.

    What autograd calls in the backward pass has the caller of its operation of the forward pass: on
    a device it runs in a thread without a line of the program.
    """
    marks = _Marks(trace)
    callers: dict[Node, Caller] = {}
    forward: dict[int, Caller] = {}
    for node in woods.nodes:
        caller = None
        if node.is_backward:
            caller = forward.get(-1 if node.sequence is None else node.sequence)
        elif node.parent is not None and node.parent in callers and _is_backward(node):
            caller = callers[node.parent]
        caller = caller or marks.at(node.event.thread, node.event.start)
        if caller is None:
            continue
        callers[node] = caller
        if node.sequence is not None and not node.is_backward:
            forward[node.sequence] = caller  # of those that have a number, the last made the node
    return callers


def _is_backward(node: Node) -> bool:
    return any(outer.is_backward for outer in node.ancestors)


class _Marks:
    """The spans around calls, by thread."""

    def __init__(self, trace: Trace) -> None:
        by_thread = defaultdict(list)
        for event in trace.callers:
            by_thread[event.thread].append(event)
        self._pieces: dict[Thread, list[tuple[float, float, str]]] = {
            thread: [
                (start, end, events[index].name)
                for start, end, index in innermost([event.span for event in events])
            ]
            for thread, events in by_thread.items()
        }
        self._starts = {
            thread: [start for start, _, _ in pieces] for thread, pieces in self._pieces.items()
        }

    def at(self, thread: Thread, instant: float) -> Caller | None:
        """Who called what ran at an instant."""
        if thread not in self._pieces:
            return None
        index = bisect_right(self._starts[thread], instant) - 1
        if index < 0 or instant >= self._pieces[thread][index][1]:
            return None
        name = self._pieces[thread][index][2]
        line, _, module = name.removeprefix(CALLER).rpartition("|")
        return Caller(line or None, module or None)
