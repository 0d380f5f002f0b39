"""What ran in a recorded window, summed by name, inputs, and who called it: the host's operations
with what they launched, and the kernels and copies of a device.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from gpulab.core.limits import TEXT_LENGTH
from gpulab.core.payloads import REST
from gpulab.core.text import cut
from gpulab.features.goodput.events import Operation
from gpulab.features.goodput.formulas import Work, formula_of, work_of
from gpulab.features.goodput.inputs import INPUTS, Inputs
from gpulab.features.goodput.trace import CALLER, Thread, Trace, TraceEvent
from gpulab.features.goodput.tree import Forest, Node, forest
from gpulab.stats.time_spans import clip, innermost, measure


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


MOST_KERNELS = 40
MOST_OPERATIONS = 200
_LONGEST_SHAPES = 500
"""Characters: an optimizer's lists have a thousand tensors, and a row is a part of one event."""
_NUMBERED = re.compile(r"\.\d+(?=\.|$)")
"""A part of a list of modules: block.3."""
_TF32 = re.compile(r"tf32|s1688")
"""In the names of kernels that multiply fp32 in tensor cores, rounded to tf32."""


def operations(trace: Trace, sample: Trace | None = None, **most: int) -> list[Operation]:
    """The kernels and copies of a device, if it did anything; then the host's operations. Of both
    the longest first, at most so many, and one more for the rest.

    `sample` is a recording of fewer steps of the same, which says who called what, and what was
    allocated: recording that takes time, so that no time is taken from it. Without it that is read
    from `trace`, as far as it is there.
    """
    return RecordedWindow(trace).operations(sample, **most)


class RecordedWindow:
    """A recording whose table can be made before there is a sample, and again with one."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._woods = forest(trace)
        self._facts = _Facts()

    def operations(
        self, sample: Trace | None = None, kernels: int = MOST_KERNELS, most: int = MOST_OPERATIONS
    ) -> list[Operation]:
        """As the function of that name."""
        trace, woods = self._trace, self._woods
        if sample is None:
            known = _known(trace, woods)
        else:
            known = _match_sample(woods, _known(sample, forest(sample)), self._facts)
        rows = _kernels(trace, woods, kernels) if trace.on_device else []
        return rows + _host(trace, woods, known, self._facts, most)


class _Fact(NamedTuple):
    """The facts that follow from the inputs of a call."""

    shapes: str
    dtype: str | None
    work: Work | None


class _Facts:
    """Those of all calls: steps are alike, and so each is worked out once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Fact] = {}
        self._of: dict[Node, _Fact] = {}

    def of(self, node: Node) -> _Fact:
        fact = self._of.get(node)
        if fact is None:
            fact = self._of[node] = self._alike(node)
        return fact

    def _alike(self, node: Node) -> _Fact:
        arguments = node.event.arguments
        key = node.name, repr([arguments.get(name) for name in INPUTS])
        fact = self._known.get(key)
        if fact is None:
            inputs = Inputs(arguments)
            work = work_of(node.name, inputs)
            shapes = cut(shapes_of(node.event.dims), _LONGEST_SHAPES)
            fact = self._known[key] = _Fact(shapes, inputs.dtype, work)
        return fact


class _Known(NamedTuple):
    """The facts of a call that only a recording that takes longer has."""

    caller: Caller
    memory_bytes: int | None


_NOTHING = _Known(Caller(), None)


def _known(trace: Trace, woods: Forest) -> dict[Node, _Known]:
    """Return what is known of each operation of a recording, by its start."""
    if not trace.callers and not trace.allocations:
        return {}
    callers = callers_of(trace, woods)
    has_memory = bool(trace.allocations)
    return {
        node: _Known(callers.get(node, Caller()), node.memory_bytes if has_memory else None)
        for node in woods.nodes
    }


def _match_sample(woods: Forest, known: Mapping[Node, _Known], facts: _Facts) -> dict[Node, _Known]:
    """Each call is that call of the sample which is at its place among those of the same name and
    shapes; where those are no whole number of times as many, only what all of them share is known.
    """
    of_sample: dict[tuple[str, str], list[_Known]] = defaultdict(list)
    for node, of_call in known.items():
        of_sample[node.name, facts.of(node).shapes].append(of_call)
    places: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for node in woods.nodes:
        places[node.name, facts.of(node).shapes].append(node)
    by_node: dict[Node, _Known] = {}
    for key, nodes in places.items():
        choices = of_sample.get(key, [])
        if choices and len(nodes) % len(choices) == 0:
            for place, node in enumerate(nodes):
                by_node[node] = choices[place % len(choices)]
        elif len(set(choices)) == 1:
            by_node |= dict.fromkeys(nodes, choices[0])
    return by_node


class _Key(NamedTuple):
    """The key that the calls of a row share."""

    name: str
    shapes: str
    dtype: str | None
    line: str | None
    module: str | None


@dataclass
class _Sums:
    calls: int = 0
    self_s: float = 0.0
    total_s: float = 0.0
    device_s: float = 0.0
    device_total_s: float = 0.0
    memory_bytes: int | None = None
    flops: int | None = None
    bytes: int | None = None
    rows: int = 0

    @property
    def weight(self) -> tuple[float, float]:
        """By which the table is in order."""
        return self.device_s, self.self_s

    def add(self, other: _Sums) -> None:
        self.calls += other.calls
        self.self_s += other.self_s
        self.total_s += other.total_s
        self.device_s += other.device_s
        self.device_total_s += other.device_total_s
        self.memory_bytes = _plus(self.memory_bytes, other.memory_bytes)
        self.flops = _plus(self.flops, other.flops)
        self.bytes = _plus(self.bytes, other.bytes)


def _plus(first: int | None, second: int | None) -> int | None:
    """The sum of what is known."""
    if first is None or second is None:
        return first if second is None else second
    return first + second


def _host(
    trace: Trace, woods: Forest, known: Mapping[Node, _Known], facts: _Facts, most: int
) -> list[Operation]:
    """The host's operations. Where modules make more rows than there may be, those of a list of
    modules count as one.
    """
    work = _work(woods, facts)
    device_totals = _device_totals(woods)
    sums: dict[_Key, _Sums] = defaultdict(_Sums)
    keys: dict[Node, _Key] = {}
    for node in woods.nodes:
        caller, memory_bytes = known.get(node, _NOTHING)
        repeats = node.repeats_its_caller
        if repeats and node.parent is not None:
            keys[node] = keys[node.parent]
        else:
            keys[node] = _key(node, facts.of(node), caller)
        nested = any(outer.name == node.name for outer in node.ancestors)
        done = work.get(node)
        row = _Sums(
            calls=int(not repeats),
            self_s=node.self_s,
            total_s=0.0 if nested else node.total_s,
            device_s=node.device_s,
            device_total_s=0.0 if nested else device_totals[node],
            memory_bytes=memory_bytes,
            flops=done.flops if done else None,
            bytes=done.bytes if done else None,
        )
        sums[keys[node]].add(row)
    if len(sums) > most:
        sums = _merged(sums, lambda key: key._replace(module=_without_numbers(key.module)))
    by_name = sorted(sums, key=lambda key: tuple(map(str, key)))
    order = sorted(by_name, key=lambda key: sums[key].weight, reverse=True)
    table = [_row(trace, key, sums[key]) for key in order[:most]]
    if rest := order[most:]:
        total = _Sums()
        for key in rest:
            total.add(sums[key])
        total.rows = len(rest)
        table.append(_row(trace, _Key(REST, "", None, None, None), total))
    return table


def _key(node: Node, fact: _Fact, caller: Caller) -> _Key:
    dtype = fact.dtype
    if dtype == "fp32" and any(_TF32.search(kernel.name) for kernel in node.kernels):
        dtype = "tf32"
    return _Key(node.name, fact.shapes, dtype, caller.line, caller.module)


def _merged(sums: Mapping[_Key, _Sums], change: Callable[[_Key], _Key]) -> dict[_Key, _Sums]:
    merged: dict[_Key, _Sums] = defaultdict(_Sums)
    for key, row in sums.items():
        merged[change(key)].add(row)
    return merged


def _without_numbers(module: str | None) -> str | None:
    return _NUMBERED.sub(".*", module) if module else module


def _row(trace: Trace, key: _Key, sums: _Sums) -> Operation:
    on_device = trace.on_device
    return Operation(
        name=key.name,
        calls=sums.calls,
        self_s=sums.self_s,
        share=sums.self_s / trace.window_s if trace.window_s else 0.0,
        shapes=key.shapes,
        on_device=False,
        rows=sums.rows or 1,
        total_s=max(sums.total_s, sums.self_s),
        device_s=sums.device_s if on_device else None,
        device_total_s=max(sums.device_total_s, sums.device_s) if on_device else None,
        memory_bytes=sums.memory_bytes,
        line=key.line[:TEXT_LENGTH] if key.line else None,
        module=key.module[:TEXT_LENGTH] if key.module else None,
        dtype=key.dtype,
        flops=sums.flops,
        bytes=sums.bytes,
    )


def _device_totals(woods: Forest) -> dict[Node, float]:
    """Return the device seconds of each operation with those within it."""
    totals = {node: node.device_s for node in woods.nodes}
    for node in reversed(woods.nodes):  # those within an operation come after it
        if node.parent is not None:
            totals[node.parent] += totals[node]
    return totals


def _work(woods: Forest, facts: _Facts) -> dict[Node, Work]:
    """Return what each call computes and moves at least, by the formula of its name: no work
    belongs to two of those that are within each other.
    """
    work: dict[Node, Work] = {}
    covered: set[Node] = set()
    for node in woods.nodes:
        if node.parent in covered:
            covered.add(node)
            continue
        formula = formula_of(node.name)
        done = facts.of(node).work
        if formula is None or done is None:
            continue
        if formula.outer and any(facts.of(inner).work for inner in node.descendants):
            continue
        doer = node
        if pattern := formula.within:
            doer = next((each for each in node.descendants if pattern.match(each.name)), node)
        work[doer] = done
        covered.add(node)
    return work


def _kernels(trace: Trace, woods: Forest, most: int) -> list[Operation]:
    """By name, each with the operation that launched most of it."""
    self_s: dict[str, float] = defaultdict(float)
    calls: Counter[str] = Counter()
    launched: dict[str, Counter[str]] = defaultdict(Counter)
    owners: Iterable[tuple[str, TraceEvent]] = (
        *((node.name, event) for node in woods.nodes for event in node.kernels),
        *(("", event) for event in woods.unowned),
    )
    for owner, event in owners:
        seconds = measure(clip([event.span], *trace.window))
        self_s[event.name] += seconds
        calls[event.name] += 1
        launched[event.name][owner] += 1
    order = sorted(self_s, key=lambda name: (-self_s[name], name))
    groups = [(name, [name]) for name in order[:most]]
    if rest := order[most:]:
        groups.append((REST, rest))
    table = []
    for name, names in groups:
        seconds = sum(self_s[each] for each in names)
        owner = launched[name].most_common(1)[0][0] if name in launched else ""
        table.append(
            Operation(
                name=name,
                calls=sum(calls[each] for each in names),
                self_s=seconds,
                share=seconds / trace.window_s if trace.window_s else 0.0,
                shapes="",
                on_device=True,
                rows=len(names),
                launched_by=owner or None,
            )
        )
    return table


def shapes_of(dims: Any) -> str:
    """Those of tensors and lists of tensors: [[64, 32], [], [[8], [8]]] is "64x32, [8, 8]"."""
    if not isinstance(dims, list):
        return ""
    return ", ".join(filter(None, map(_shape, dims)))


def _shape(dim: Any) -> str:
    if not isinstance(dim, list) or not dim:
        return ""
    if isinstance(dim[0], list):
        return f"[{shapes_of(dim)}]"
    return "x".join(map(str, dim))
