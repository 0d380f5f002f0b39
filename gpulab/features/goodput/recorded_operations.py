"""What ran in a recorded window, summed by name, inputs, and who called it: the host's operations
with what they launched, and the kernels and copies of a device.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gpulab.core.limits import TEXT_LENGTH
from gpulab.core.payloads import REST
from gpulab.core.text import cut
from gpulab.engine.rounding import PRECISION
from gpulab.features.goodput.events import Operation
from gpulab.stats.time_spans import clip, measure
from gpulab.traces.trace import DTYPES, Trace, TraceEvent
from gpulab.traces.tree import Caller, Forest, Node, forest

MOST_KERNELS = 40
MOST_OPERATIONS = 200
_LONGEST_SHAPES = 500
"""Characters: an optimizer's lists have a thousand tensors, and a row is a part of one event."""
_NUMBERED = re.compile(r"\.\d+(?=\.|$)")
"""A part of a list of modules: block.3."""
_MOST_OF_IT = 0.8
_TF32 = re.compile(r"tf32|s1688")
"""In the names of kernels that multiply fp32 in tensor cores, rounded to tf32."""


class Work(NamedTuple):
    """What a call computes, where that is known, and moves at least."""

    flops: int | None
    bytes: int


WorkOf = Callable[[str, Mapping[str, Any]], Work | None]
"""The work of a call by its name, and what the recording says of its inputs."""


def operations(
    trace: Trace, sample: Trace | None = None, work_of: WorkOf | None = None, **most: int
) -> list[Operation]:
    """The kernels and copies of a device, if it did anything; then the host's operations. Of both
    the longest first, at most so many, and one more for the rest.

    `sample` is a recording of fewer steps of the same, which says who called what, and what was
    allocated: recording that takes time, so that no time is taken from it. Without it that is read
    from `trace`, as far as it is there.
    """
    window = RecordedWindow(trace, work_of)
    if sample is not None:
        window.take_callers(sample)
    return window.operations(**most)


class RecordedWindow:
    """A recording whose table can be made before there is a sample, and again with one."""

    def __init__(self, trace: Trace, work_of: WorkOf | None = None) -> None:
        self._trace = trace
        self._on_device = trace.on_device
        self._woods = forest(trace)
        self._shapes = {node: _shapes(node) for node in self._woods.nodes}
        self._work = _work(self._woods, work_of) if work_of else {}

    def take_callers(self, sample: Trace) -> None:
        """Let each call have the caller and the memory of that call of the sample which is at its
        place among those of the same name and shapes; where those are no whole number of times as
        many, only what all of them share is known.
        """
        of_sample: dict[tuple[str, str], list[tuple[Caller, int | None]]] = defaultdict(list)
        for node in forest(sample).nodes:
            of_sample[node.name, _shapes(node)].append((node.caller, node.memory_bytes))
        alike: dict[tuple[str, str], list[Node]] = defaultdict(list)
        for node, shapes in self._shapes.items():
            alike[node.name, shapes].append(node)
        for key, nodes in alike.items():
            known = of_sample[key]
            if not known or (len(nodes) % len(known) and len(set(known)) > 1):
                continue
            for place, node in enumerate(nodes):
                node.caller, node.memory_bytes = known[place % len(known)]

    def operations(
        self, kernels: int = MOST_KERNELS, most: int = MOST_OPERATIONS
    ) -> list[Operation]:
        """As the function of that name. Where modules make more rows than there may be, those of a
        list of modules count as one.
        """
        groups = self._grouped(lambda module: module)
        if len(groups) > most:
            groups = self._grouped(lambda module: module and _NUMBERED.sub(".*", module))
        rows = [(self._row(key, nodes), nodes) for key, nodes in groups.items()]
        rows.sort(key=lambda row: (-(row[0].device_s or 0.0), -row[0].self_s, str(row[0])))
        table = [row for row, _ in rows[:most]]
        if rest := [node for _, nodes in rows[most:] for node in nodes]:
            key = _Key(REST, "", None, None, None)
            table.append(self._row(key, rest, len(rows) - most))
        return _kernels(self._trace, self._woods, kernels) + table

    def _grouped(self, module_of: Callable[[str | None], str | None]) -> dict[_Key, list[Node]]:
        keys: dict[Node, _Key] = {}
        groups: dict[_Key, list[Node]] = defaultdict(list)
        for node in self._woods.nodes:
            line, module = node.caller
            key = _Key(node.name, self._shapes[node], _dtype(node), line, module_of(module))
            if node.parent is not None and node.repeats_its_caller:
                key = keys[node.parent]
            keys[node] = key
            groups[key].append(node)
        return groups

    def _row(self, key: _Key, nodes: Sequence[Node], rows: int = 1) -> Operation:
        outer = [node for node in nodes if all(each.name != node.name for each in node.ancestors)]
        self_s = sum(node.self_s for node in nodes)
        device_s = device_total_s = None
        if self._on_device:
            device_s = sum(node.device_s for node in nodes)
            device_total_s = max(device_s, sum(node.device_total_s for node in outer))
        done = [node for node in nodes if node in self._work]
        if device_total_s:  # a call that a checkpoint stopped launched nothing
            done = [node for node in done if node.device_total_s]
        work = [self._work[node] for node in done]
        return Operation(
            name=key.name,
            calls=sum(not node.repeats_its_caller for node in nodes),
            self_s=self_s,
            share=self._trace.share(self_s),
            shapes=key.shapes,
            on_device=False,
            rows=rows,
            total_s=max(self_s, sum(node.total_s for node in outer)),
            device_s=device_s,
            device_total_s=device_total_s,
            memory_bytes=_sum(node.memory_bytes for node in nodes),
            line=key.line and key.line[:TEXT_LENGTH],
            module=key.module and key.module[:TEXT_LENGTH],
            dtype=key.dtype,
            flops=_sum(done.flops for done in work),
            bytes=_sum(done.bytes for done in work),
        )


class _Key(NamedTuple):
    """The key that the calls of a row share."""

    name: str
    shapes: str
    dtype: str | None
    line: str | None
    module: str | None


def _sum(values: Iterable[int | None]) -> int | None:
    """The sum of what is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _work(woods: Forest, work_of: WorkOf) -> dict[Node, Work]:
    """Return what each call computes and moves at least: no work belongs to two operations of which
    one is within the other.
    """
    work: dict[Node, Work] = {}
    covered: set[Node] = set()
    for node in woods.nodes:
        if node.parent in covered:
            covered.add(node)
        elif done := work_of(node.name, node.event.arguments):
            work[_doer(node)] = done
            covered.add(node)
    return work


def _doer(node: Node) -> Node:
    """Return what takes most of the time of an operation by itself: of a convolution, that of a
    library within it.
    """
    longest = max(node.descendants, key=lambda each: (each.device_s, each.self_s), default=node)
    if node.device_total_s:
        takes_most = longest.device_s > _MOST_OF_IT * node.device_total_s
    else:
        takes_most = longest.self_s > _MOST_OF_IT * node.total_s
    if takes_most:
        return longest
    return node


def _kernels(trace: Trace, woods: Forest, most: int) -> list[Operation]:
    """By name, each with the operation that launched most of it."""
    calls: dict[str, list[tuple[float, str]]] = defaultdict(list)
    owners: Iterable[tuple[str, TraceEvent]] = (
        *((node.name, event) for node in woods.nodes for event in node.kernels),
        *(("", event) for event in woods.unowned),
    )
    for owner, event in owners:
        calls[event.name].append((measure(clip([event.span], *trace.window)), owner))
    order = sorted(calls, key=lambda name: (-sum(seconds for seconds, _ in calls[name]), name))
    groups = [(name, [name]) for name in order[:most]]
    if rest := order[most:]:
        groups.append((REST, rest))
    table = []
    for name, names in groups:
        launched = [call for each in names for call in calls[each]]
        self_s = sum(seconds for seconds, _ in launched)
        ((owner, _),) = Counter(owner for _, owner in launched).most_common(1)
        table.append(
            Operation(
                name=name,
                calls=len(launched),
                self_s=self_s,
                share=trace.share(self_s),
                shapes="",
                on_device=True,
                rows=len(names),
                launched_by=owner if owner and name != REST else None,
            )
        )
    return table


def _dtype(node: Node) -> str | None:
    """The type of the first tensor, of floating-point numbers where there is one, as it is computed
    with.
    """
    types = node.event.arguments.get("Input type")
    named = [DTYPES[kind] for kind in types if kind in DTYPES] if isinstance(types, list) else []
    floating = [PRECISION[name] for name in named if name in PRECISION]
    dtype = next(iter((*floating, *named)), None)
    if dtype == "fp32" and any(_TF32.search(kernel.name) for kernel in node.kernels):
        return "tf32"
    return dtype


def _shapes(node: Node) -> str:
    return cut(shapes_of(node.event.arguments.get("Input Dims")), _LONGEST_SHAPES)


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
