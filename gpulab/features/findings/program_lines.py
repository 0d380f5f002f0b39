"""Rules about lines of the program: where it waits, what it runs outside of torch, what it converts
and copies anew in each step, and which operation takes most where no other rule holds.

On a CPU, where a line is known: of samples, and of a recording with callers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from gpulab.core.findings import Value
from gpulab.core.payloads import REST, LineTime, Operation
from gpulab.features.findings import findings
from gpulab.features.findings.advice import Evidence
from gpulab.features.findings.rule import (
    COMPUTED,
    Fix,
    Holds,
    Judged,
    Rule,
    Threshold,
    measured,
    profiled,
)
from gpulab.features.findings.step import AT_ROOF, Step

_WAITS = Threshold(0.1, "gpulab: as for data; TraceML 10 %")
_OUTSIDE = Threshold(0.2, "gpulab: twice what a Python loop around large operations takes")
_DISPATCH_S = Threshold(2e-5, "gpulab: what Python takes around one operation of torch")
_CONVERTS = Threshold(0.1, "gpulab: as for copies; gpu-idle 10 %")
_GROWS = Threshold(0.1, "gpulab: as for copies; gpu-idle 10 %")
_SIZES = Threshold(3, "gpulab: two may be two things; three are one that grows")
_MOST = Threshold(0.3, "gpulab: a third of the step is worth a look, by whatever it is")
_WAITED = ("waiting", "preempted", "other")
_FOR_RANKS = Fix(
    "send fewer and larger messages, start them earlier and compute meanwhile, or find the rank "
    "that comes late",
    (
        "sent = dist.all_reduce(bucket, async_op=True)  # once it is full",
        "output = compute(batch)  # meanwhile",
        "sent.wait()  # where the sum is needed",
    ),
    "gradient_buckets",
)
"""Where several ranks run a step, it is each other that they wait for."""
_MOST_OF_IT = 0.8
_NAMED = ("data wait", "sync", "copies")
"""Parts that a phase names: another rule is about them."""
_TYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}


def _waits_at_a_line(step: Step) -> Judged:
    """The line at which the main thread waits longest; not in a phase that waits by its name."""
    waits = _by_line(step.lines, waiting=True)
    if step.on_gpu or not waits:
        return None
    where, share = max(waits.items(), key=lambda entry: entry[1])
    high = min(sum(waits.values()), step.share(*_WAITED))
    if share < _WAITS.value or high < _WAITS.value:
        return None
    share = min(share, high)
    return Holds(
        {"share": share, "line": where.line, "function": where.function, "source": where.source},
        # its answer may be needed at once
        low=0.0,
        high=share,
        evidence=(profiled("waiting at the line", share), profiled("waiting at all lines", high)),
        takes=_WAITED,
        fix=_FOR_RANKS if len(step.variant.ranks) > 1 else None,
    )


def _by_line(lines: Iterable[LineTime], *, waiting: bool) -> dict[LineTime, float]:
    """The share of each line, by its longest expression."""
    longest: dict[tuple[str, str], LineTime] = {}
    shares: dict[tuple[str, str], float] = defaultdict(float)
    for each in lines:
        key = each.line, each.function
        longest.setdefault(key, each)
        shares[key] += each.waiting if waiting else each.running
    return {longest[key]: share for key, share in shares.items() if share}


def _runs_outside(step: Step) -> Judged:
    if step.on_gpu or not step.lines:
        return None
    calls: dict[str | None, float] = defaultdict(float)
    for row in step.operations:
        calls[row.line] += row.calls
    shares = {
        where: share
        for where, share in _by_line(step.lines, waiting=False).items()
        if share * (step.step_s or 0.0) > _DISPATCH_S.value * calls[where.line]
    }
    functions: dict[str, float] = defaultdict(float)
    for where, share in shares.items():
        functions[_part(where)] += share
    if not functions:
        return None
    part, share = max(functions.items(), key=lambda entry: entry[1])
    share = min(share, 1 - step.share(*_NAMED))
    if share < _OUTSIDE.value:
        return None
    inside = [where for where in shares if _part(where) == part]
    longest = max(inside, key=lambda where: shares[where])
    values: dict[str, Value] = {
        "share": share,
        "line": longest.line,
        "function": longest.function,
        "source": longest.source,
        "whole_function": len(inside) > 1,
    }
    evidence = (
        profiled("outside of torch there", share),
        profiled("at the longest line", shares[longest]),
    )
    return Holds(values, 0.0, share, evidence, takes=_WAITED)


def _part(where: LineTime) -> str:
    """What is one part of a program: a function, but a line of the outermost one."""
    return where.line if where.outermost else where.function


def _conversions(step: Step) -> dict[str, tuple[Operation, Operation, float]]:
    """By line what is converted there: the row of the conversion, that of its copy, the share."""
    rows = [row for row in step.operations if not row.on_device and row.line]
    copies = {(row.line, _first(row)): row for row in rows if row.name == "aten::copy_"}
    found: dict[str, tuple[Operation, Operation, float]] = {}
    for row in rows:
        copy = copies.get((row.line, _first(row)))
        if row.name != "aten::_to_copy" or copy is None or not row.dtype or not copy.dtype:
            continue
        # a number of Python's has no shape, and no other type to be kept in
        if row.dtype == copy.dtype or not _first(row) or not step.step_s:
            continue
        share = (row.total_s or 0.0) / step.step_s
        line = row.line or ""
        if line not in found or share > found[line][2]:
            found[line] = row, copy, share
    return found


def _first(row: Operation) -> str:
    return row.shapes.split(", ")[0]


def _converts(step: Step) -> Judged:
    if step.on_gpu:
        return None
    conversions = _conversions(step)
    if not conversions:
        return None
    line, (row, copy, share) = max(conversions.items(), key=lambda entry: entry[1][2])
    if share < _CONVERTS.value:
        return None
    share = min(share, 1.0)
    values: dict[str, Value] = {
        "share": share,
        "line": line,
        "source_type": _TYPES.get(row.dtype or "", row.dtype or ""),
        "target_type": _TYPES.get(copy.dtype or "", copy.dtype or ""),
        "shapes": _first(row),
    }
    evidence = (profiled("converting", share), profiled("conversions", row.calls, "a step"))
    return Holds(values, 0.0, share, evidence, takes=("alloc", *COMPUTED))


def _concatenations(step: Step) -> list[Operation]:
    """Those at lines where each has another size: what is there is copied to make it longer."""
    rows = [row for row in step.operations if row.name == "aten::cat" and row.line]
    sizes: dict[str | None, set[str]] = defaultdict(set)
    for row in rows:
        sizes[row.line].add(row.shapes)
    return [row for row in rows if len(sizes[row.line]) >= _SIZES.value]


def _grows(step: Step) -> Judged:
    if step.on_gpu:
        return None
    rows = _concatenations(step)
    share = min(1.0, step.share_of_rows(rows))
    if share < _GROWS.value:
        return None
    values: dict[str, Value] = {
        "share": share,
        "operation": "aten::cat",
        "sizes": len({row.shapes for row in rows}),
        "lines": sorted({row.line or "" for row in rows}),
    }
    calls = sum(row.calls for row in rows)
    evidence = (profiled("concatenating", share), profiled("calls", calls, "a step"))
    return Holds(values, 0.0, share, evidence, takes=("alloc", *COMPUTED))


def explained_lines(step: Step) -> set[str]:
    """Lines whose fresh memory belongs to what another rule says of them."""
    lines = {line for line, entry in _conversions(step).items() if entry[2] >= _CONVERTS.value}
    rows = _concatenations(step)
    if step.share_of_rows(rows) >= _GROWS.value:
        lines |= {row.line or "" for row in rows}
    return lines


def _takes_most(step: Step) -> Judged:
    rows = [row for row in step.operations if not row.on_device and row.line and row.name != REST]
    if step.on_gpu or step.at_roof or not rows:
        return None
    groups: dict[tuple[str, str], list[Operation]] = defaultdict(list)
    for row in rows:
        groups[row.name, row.line or ""].append(row)
    by_name: dict[str, float] = defaultdict(float)
    for row in rows:
        by_name[row.name] += row.share
    operation, share = max(by_name.items(), key=lambda entry: entry[1])
    if share < _MOST.value:
        return None
    share = min(share, 1.0)
    of_roof = _of_roof(step, operation)
    if of_roof is not None and of_roof >= AT_ROOF:
        return None
    inside = {key: group for key, group in groups.items() if key[0] == operation}
    (_, line), group = max(inside.items(), key=lambda entry: step.share_of_rows(entry[1]))
    longest = max(group, key=lambda row: row.share)
    values: dict[str, Value] = {
        "share": share,
        "operation": operation,
        "line": line,
        "calls": sum(row.calls for row in rows if row.name == operation),
        "shapes": longest.shapes if len(group) == 1 else "",
    }
    evidence: tuple[Evidence, ...] = (
        profiled("the operation", share),
        profiled("at its longest line", min(1.0, step.share_of_rows(group))),
    )
    if of_roof is None:
        return Holds(values, 0.0, share, evidence)
    evidence = (*evidence, measured("of its roof", of_roof))
    return Holds(values, 0.0, share * (1 - of_roof), evidence)


def _of_roof(step: Step, operation: str) -> float | None:
    """What the calls of an operation reach together; None where that is not known of all."""
    points = [each for each in step.variant.operation_points if each.variant == operation]
    seconds = sum(each.seconds for each in points)
    rows = [row for row in step.operations if row.name == operation and not row.on_device]
    known_s = sum(row.total_s or row.self_s for row in rows)
    if not seconds or seconds < _MOST_OF_IT * known_s:
        return None
    return sum(each.fraction * each.seconds for each in points) / seconds


RULES = (
    Rule(
        21,
        findings.waits_in_line,
        _waits_at_a_line,
        "ask earlier, in a thread or for the next step, and compute while the answer is under way",
        (
            "pool = concurrent.futures.ThreadPoolExecutor(1)  # once",
            "following = pool.submit(receive)  # for the next step",
            "features = following.result()  # after this step's work",
        ),
        "input_pipeline",
        {"share": _WAITS},
    ),
    Rule(
        22,
        findings.python_in_step,
        _runs_outside,
        "do it once before the loop, in worker processes beside it, or as one call for the whole "
        "batch",
        (
            "records = [decode(line) for line in lines]  # before the loop",
            "DataLoader(data, num_workers=4)  # or in processes beside it",
            "table = torch.bincount(indices)  # or one call, not a loop",
        ),
        "input_pipeline",
        {"share": _OUTSIDE, "for one operation": _DISPATCH_S},
    ),
    Rule(
        23,
        findings.converts_each_step,
        _converts,
        "convert what stays the same once, or keep it in the type that it is computed in",
        (
            "table = table.to(torch.float32)  # once, before the loop",
            "# or compute in the type that is stored:",
            "scores = queries.to(table.dtype) @ table.T",
        ),
        "precision",
        {"share": _CONVERTS},
    ),
    Rule(
        24,
        findings.grows_by_copies,
        _grows,
        "allocate the longest once, and write what is new into it",
        (
            "cache = torch.empty(batch, heads, longest, width)  # once",
            "cache[:, :, length] = key[:, :, 0]",
            "seen = cache[:, :, : length + 1]  # a view, no copy",
        ),
        "preallocation",
        {"share": _GROWS, "sizes": _SIZES},
    ),
    Rule(
        25,
        findings.one_operation,
        _takes_most,
        "look at its line: is all of it needed, in each step, in this type and layout",
        (
            "# gpulab --run train.py:step --top 20   its operations by line",
            "# fewer elements, a smaller type, a contiguous layout,",
            "# torch.compile, more threads (--threads 8)",
        ),
        "roofline_tour",
        {"share": _MOST},
        last=True,
    ),
)
