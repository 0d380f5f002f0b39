"""Rules about lines of the program: where it waits, what it runs outside of torch, what it converts
and copies anew in each step.

On a CPU, where a line is known: of samples, and of a recording with callers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gpulab.core.findings import Value
from gpulab.core.payloads import BUSY
from gpulab.features.findings import findings
from gpulab.features.findings.rule import (
    COMPUTED,
    Match,
    Rule,
    RuleResult,
    Threshold,
    profiled,
)
from gpulab.features.findings.step import Step

if TYPE_CHECKING:
    from gpulab.features.goodput.events import LineTime, Operation

_WAITS = Threshold(0.1, "gpulab: as for data; TraceML 10 %")
_OUTSIDE = Threshold(0.2, "gpulab: twice what a Python loop around large operations takes")
_DISPATCH_S = Threshold(2e-5, "gpulab: what Python takes around one operation of torch")
_CONVERTS = Threshold(0.1, "gpulab: as for copies; gpu-idle 10 %")
_GROWS = Threshold(0.1, "gpulab: as for copies; gpu-idle 10 %")
_SIZES = Threshold(3, "gpulab: two may be two things; three are one that grows")
_WAITED = ("waiting", "not running", "preempted", "other")
_NAMED = ("data wait", "sync", "copies")
"""Parts that a phase names: another rule is about them."""
_TYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}


def _waits_at_a_line(step: Step) -> RuleResult:
    """The line at which the main thread waits longest; not in a phase that waits by its name."""
    waits = _line_shares(step.lines, waiting=True)
    if step.on_gpu or not waits:
        return None
    where, share = max(waits.items(), key=lambda entry: entry[1])
    high = min(sum(waits.values()), step.share("waiting"))
    if share < _WAITS.value or high < _WAITS.value:
        return None
    share = min(share, high)
    return Match(
        {"share": share, "line": where.line, "function": where.function, "source": where.source},
        share,
        (profiled("waiting at the line", share), profiled("waiting at all lines", high)),
        takes=_WAITED,
    )


def _line_shares(lines: Iterable[LineTime], *, waiting: bool) -> dict[LineTime, float]:
    """The share of each line, by its longest expression."""
    longest: dict[tuple[str, str], LineTime] = {}
    shares: dict[tuple[str, str], float] = defaultdict(float)
    for each in lines:
        key = each.line, each.function
        longest.setdefault(key, each)
        shares[key] += each.waiting if waiting else each.running
    return {longest[key]: share for key, share in shares.items() if share}


def _runs_outside(step: Step) -> RuleResult:
    if step.on_gpu or not step.lines:
        return None
    calls: dict[str | None, float] = defaultdict(float)
    for row in step.operations:
        calls[row.line] += row.calls
    shares = {
        where: share
        for where, share in _line_shares(step.lines, waiting=False).items()
        if share * (step.step_s or 0.0) > _DISPATCH_S.value * calls[where.line]
    }
    functions: dict[str, float] = defaultdict(float)
    for where, share in shares.items():
        functions[_part(where)] += share
    if not functions:
        return None
    part, share = max(functions.items(), key=lambda entry: entry[1])
    # what the recording gives to operations, or to a wait that has a name, is no Python
    share = min(share, 1 - step.share(*_NAMED, *BUSY, "alloc"))
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
    return Match(values, share, evidence, takes=_WAITED)


def _part(where: LineTime) -> str:
    """Return the part of a program at a place: a function, but a line of the outermost one."""
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


def _converts(step: Step) -> RuleResult:
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
    return Match(values, share, evidence, takes=("alloc", *COMPUTED))


def _concatenations(step: Step) -> list[Operation]:
    """Those at lines where each has another size: what is there is copied to make it longer."""
    rows = [row for row in step.operations if row.name == "aten::cat" and row.line]
    sizes: dict[str | None, set[str]] = defaultdict(set)
    for row in rows:
        sizes[row.line].add(row.shapes)
    return [row for row in rows if len(sizes[row.line]) >= _SIZES.value]


def _grows(step: Step) -> RuleResult:
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
    return Match(values, share, evidence, takes=("alloc", *COMPUTED))


def explained_lines(step: Step) -> set[str]:
    """Lines whose fresh memory belongs to what another rule says of them."""
    lines = {line for line, entry in _conversions(step).items() if entry[2] >= _CONVERTS.value}
    rows = _concatenations(step)
    if step.share_of_rows(rows) >= _GROWS.value:
        lines |= {row.line or "" for row in rows}
    return lines


RULES = (
    Rule(
        findings.waits_in_line,
        _waits_at_a_line,
        "where its answer is not needed at once, ask earlier, in a thread or for the next step",
        (
            "pool = concurrent.futures.ThreadPoolExecutor(1)  # once",
            "following = pool.submit(receive)  # for the next step",
            "features = following.result()  # after this step's work",
        ),
        "input_pipeline",
        {"share": _WAITS},
    ),
    Rule(
        findings.python_in_step,
        _runs_outside,
        "what need not be done in each step, do once before the loop, or in processes beside it",
        (
            "records = [decode(line) for line in lines]  # before the loop",
            "# or in processes beside it, where cores are free",
            "table = torch.bincount(indices)  # or one call, not a loop",
        ),
        "input_pipeline",
        {"share": _OUTSIDE, "for one operation": _DISPATCH_S},
    ),
    Rule(
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
)
