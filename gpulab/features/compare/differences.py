"""What two runs do not have in common: device, versions, settings, and the lines of their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import zip_longest

from gpulab.core.machine import Device
from gpulab.core.units import plural
from gpulab.features.compare.report import (
    ChangedLine,
    Difference,
    DifferenceKind,
    Side,
)
from gpulab.report.past import OF_TWO_PARTS, first_parts
from gpulab.scenario import Param

_PLACE = ("platform",)
"""Of the environment, what says where it ran."""
_CLOCK = 0.05
"""A relative difference of clocks from which on they are not the same."""
_UUID = 12
"""Characters of a GPU's that tell it from others."""
_MOST_COMPARED = 2_000
"""Lines of a file between its first and its last change: to match more of them takes seconds."""


def differences_of(a: Side, b: Side) -> list[Difference]:
    """The environment first, the source last. What one side does not know is no difference."""
    return [fact for fact in _facts(a, b) if fact.a != fact.b]


_WORTH_A_WORD = ("device", "driver", "torch", "power limit", "parameters")


def in_common(a: Side, b: Side) -> list[str]:
    """Return what is alike and worth a word, such as device NVIDIA H200."""
    alike = [fact for fact in _facts(a, b) if fact.a and fact.a == fact.b]
    return [f"{fact.what} {fact.a}" for fact in alike if fact.what in _WORTH_A_WORD]


def _facts(a: Side, b: Side) -> Iterator[Difference]:
    """All that may differ; what does not has the same text twice."""
    if a.device and b.device:
        yield _environment("device", device_name(a.device), device_name(b.device))
    for name in sorted(a.environment.keys() & b.environment.keys(), key=_place_of_version):
        yield _version(name, a.environment[name], b.environment[name])
    if a.power_limit_w and b.power_limit_w:
        yield _environment("power limit", f"{a.power_limit_w:.0f} W", f"{b.power_limit_w:.0f} W")
    if a.device and b.device and a.device.sm_mhz and b.device.sm_mhz:
        yield _environment("highest clock", _mhz(a.device.sm_mhz), _mhz(b.device.sm_mhz))
    if a.sm_mhz and b.sm_mhz and abs(b.sm_mhz / a.sm_mhz - 1) > _CLOCK:
        yield _environment("SM clock", _mhz(a.sm_mhz), _mhz(b.sm_mhz))
    names = [name for name in {**a.params, **b.params} if a.params.get(name) != b.params.get(name)]
    yield Difference(
        what="parameters",
        kind=DifferenceKind.PARAMETERS,
        a=_assignments(a.params, names or a.params),
        b=_assignments(b.params, names or b.params),
    )
    yield _method("scenario", a.scenario, b.scenario)
    yield _method("outcome", a.outcome, b.outcome)
    yield _method("length", _length(a), _length(b))
    if a.host and b.host:
        yield _method("host", a.host, b.host)
    if a.device and b.device and a.device.uuid and b.device.uuid:
        yield _method("GPU", a.device.uuid[:_UUID], b.device.uuid[:_UUID])
    yield Difference(
        what="source",
        kind=DifferenceKind.SOURCE,
        a=a.source_sha256[:12] or None,
        b=b.source_sha256[:12] or None,
    )


def _environment(what: str, a: str | None, b: str | None) -> Difference:
    return Difference(what=what, kind=DifferenceKind.ENVIRONMENT, a=a, b=b)


def _method(what: str, a: str | None, b: str | None) -> Difference:
    return Difference(what=what, kind=DifferenceKind.METHOD, a=a, b=b)


def _version(name: str, a: str | None, b: str | None) -> Difference:
    if name in _PLACE:
        return _method(name, a, b)
    if name in OF_TWO_PARTS and a and b and first_parts(a) == first_parts(b):
        return _method(name, a, b)
    return _environment(name, a, b)


def _mhz(value: float) -> str:
    return f"{value:.0f} MHz"


_FIRST_VERSIONS = ("driver", "torch", "cuda", "triton", "python", "gpulab")


def _place_of_version(name: str) -> tuple[int, str]:
    place = len(_FIRST_VERSIONS)
    if name in _FIRST_VERSIONS:
        place = _FIRST_VERSIONS.index(name)
    return place, name


def device_name(device: Device | None) -> str:
    if device is None:
        return ""
    if device.kind == "cpu":
        return f"{device.name}, {plural(device.threads, 'thread')}"
    return device.name


def _assignments(params: Mapping[str, Param], names: Iterable[str]) -> str | None:
    return " ".join(f"{name}={params[name]}" for name in names if name in params) or None


def _length(side: Side) -> str:
    if side.smoke:
        return "smoke"
    return "quick" if side.quick else "full"


@lru_cache(maxsize=1)
def changed_lines(a: str, b: str, file: str = "") -> list[ChangedLine]:
    """Return every line of one file that is not in the other, in the order of the files."""
    before, after = a.split("\n"), b.split("\n")
    start = next(
        (place for place, both in enumerate(zip_longest(before, after)) if both[0] != both[1]),
        len(before),
    )
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    before, after = before[start : len(before) - end], after[start : len(after) - end]
    blocks: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(before), 0, len(after))]
    if max(len(before), len(after)) <= _MOST_COMPARED:
        blocks = SequenceMatcher(None, before, after).get_opcodes()
    changes = []
    for kind, a_from, a_to, b_from, b_to in blocks:
        if kind != "equal":
            sides = ("a", before, range(a_from, a_to)), ("b", after, range(b_from, b_to))
            for side, lines, places in sides:
                for place in places:
                    number = start + place + 1
                    changes.append(
                        ChangedLine(file=file, side=side, line=number, text=lines[place])
                    )
    return changes
