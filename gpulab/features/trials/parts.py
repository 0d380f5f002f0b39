"""The parts of a step, and which variants of it tell what each would gain."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from gpulab.core.jobs import Delay, Measure, PartKind, StepPart, VariantInfo
from gpulab.core.payloads import WAITING

MAIN, THREAD, PROCESSES = "step's thread", "thread", "workers"
PLAIN, BARE = "as it is", "without hooks"
_DELAY = 0.2
"""Of a step: several times what an interval is wide, and little enough to be a derivative."""
_WAITS = 0.1
_FALLBACKS = (PartKind.FORWARD, PartKind.BACKWARD, PartKind.OPTIMIZER)


class PartsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for the parts of a variant of a job, and which operations are parts."""

    job: Measure
    variant: str
    operations: list[str] = []


class PartsSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that one process saw."""

    step_s: float = 0.0
    parts: list[StepPart] = []


def judged(seen: PartsSeen, operations: Sequence[str], *, on_gpu: bool) -> list[StepPart]:
    """The parts in their order, each with why it cannot be delayed."""
    parts = list(seen.parts)
    if any(part.kind == PartKind.PHASE for part in parts):
        parts = [part for part in parts if part.kind not in _FALLBACKS]
    if on_gpu:
        host = PartKind.HOST
        parts.append(StepPart(kind=host, name=host.value, passes=1, lane=MAIN))
    lanes = {part.lane for part in parts}
    result = [
        replace(part, why_not=part.why_not or _why_not(part, several=len(lanes) > 1, on_gpu=on_gpu))
        for part in parts
    ]
    seen_names = {part.name for part in parts}
    for name in operations:
        if name not in seen_names:
            missing = "no step calls it"
            result.append(StepPart(kind=PartKind.OPERATION, name=name, why_not=missing))
    return result


def _why_not(part: StepPart, *, several: bool, on_gpu: bool) -> str:
    waits = part.kind == PartKind.PHASE and part.name in WAITING
    if on_gpu and waits:
        return "the host waits in it; on the device delay copies, or what it waits for"
    if waits and several and part.lane == MAIN and (part.running or 0.0) < _WAITS:
        return "it waits for another thread or process: the part that it waits for is the one"
    return ""


def variants_of(
    function: str,
    parts: Sequence[StepPart],
    step_s: float,
    *,
    on_gpu: bool,
    only: StepPart | None = None,
) -> tuple[tuple[VariantInfo, ...], float]:
    """(the variants: the step with hooks, without them, and with each part delayed, or `only` this
    one; the delay of a step).

    Where a step has several threads or processes, each part has another variant, in which all
    others are delayed whenever it has run.
    """
    delay_s = _DELAY * step_s
    able = [part for part in parts if not part.why_not]
    hooks = tuple(Delay(kind=part.kind, name=part.name) for part in able)
    infos = [
        VariantInfo(name=PLAIN, function=function, delays=hooks),
        VariantInfo(name=BARE, function=function, against=PLAIN, delays=()),
    ]
    several = len({part.lane for part in able}) > 1 and not on_gpu
    for place, part in enumerate(able):
        if only not in (None, part):
            continue
        one = replace(
            hooks[place],
            seconds=delay_s / part.passes,
            busy=part.running is None or part.running >= _WAITS,
        )
        for others in (False, True) if several else (False,):
            delays = tuple(
                replace(one, others=others) if at == place else hook
                for at, hook in enumerate(hooks)
            )
            name = name_of(part.kind, part.name, others=others)
            infos.append(VariantInfo(name=name, function=function, against=PLAIN, delays=delays))
    return tuple(infos), delay_s


def name_of(kind: PartKind, name: str, *, others: bool) -> str:
    """Return the name of the variant that delays a part, or all but it."""
    part = name if kind.value == name or kind == PartKind.OPERATION else f"{kind.value} {name}"
    return f"{part}: others longer" if others else f"{part}: longer"
