"""Which addresses the lanes of a warp access together: bank conflicts and partly used sectors, from
PTX alone.

The first warp of the first block is followed through the integer arithmetic of a kernel, each value
as one unknown that all lanes share plus a number for each lane. Values that depend on loaded data
are unknown, and so are those of later rounds of a loop: what is found is what the first one
accesses.

Shared memory has 32 banks of 4 bytes, and a warp's access takes as many passes as the busiest bank
has words in it (CUDA C++ Programming Guide, "Shared Memory"); wider accesses go by halves and
quarters of a warp. Global memory is read and written in sectors of 32 bytes.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import NamedTuple

_LANES = 32
_BANKS = 32
_WORD = 4
_SECTOR = 32
_LINE = re.compile(r"^\s*(?:@!?%\w+\s+)?(?P<opcode>[a-z][\w.:]*)(?P<operands>[^;]*);")
_LABEL = re.compile(r"^\s*(\$\w+):")
_BRANCH = re.compile(r"^\s*(?:@!?%\w+\s+)?bra(?:\.uni)?\s+(\$\w+);")
_WIDTH = re.compile(r"\.[usbf](8|16|32|64|128|256)\b")
_ADDRESS = re.compile(r"\[(?P<base>[%\w$]+)(?:\s*\+\s*(?P<offset>-?\d+))?\]")
_INTEGER = re.compile(r"-?\d+$|-?0x[0-9a-fA-F]+$")
_COPIES = ("mov", "cvta", "cvt")


def _inserted(bits: int, into: int, place: int, count: int) -> int:
    mask = ((1 << count) - 1) << place
    return (into & ~mask) | ((bits << place) & mask)


_EXACT: dict[str, Callable[..., int]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shr": operator.rshift,
    "div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "rem": lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
    "min": min,
    "max": max,
    "bfi": _inserted,
    "bfe": lambda bits, place, count: (bits >> place) & ((1 << count) - 1),
}
"""Of numbers that are known altogether."""


class _Value(NamedTuple):
    """For each lane its number, plus an unknown that all lanes share where it is `relative`."""

    relative: bool
    lanes: tuple[int, ...]

    @property
    def uniform(self) -> bool:
        return len(set(self.lanes)) == 1


class Accesses(NamedTuple):
    """Passes of the worst access to shared memory, and the shares of sectors that loads and stores
    use: of those of the widest the worst.

    None where there is no such access, or no address of one is known.
    """

    bank_conflicts: int | None
    load_use: float | None
    store_use: float | None


def accesses(body: str, threads: tuple[int, int, int]) -> Accesses:
    """Return what the first warp accesses, by one kernel's PTX and the threads of a block."""
    values = _Registers(threads)
    conflicts: list[int] = []
    use: dict[str, list[tuple[int, float]]] = {"ld": [], "st": []}
    lines = body.splitlines()
    loops = _loops(lines)
    for place, line in enumerate(lines):
        found = _LINE.match(line)
        if found is None:
            continue
        base, *modifiers = found["opcode"].split(".")
        operands = found["operands"].strip()
        if base in use and "param" not in modifiers and "local" not in modifiers:
            lanes = values.address(operands)
            size = _bytes(found["opcode"], modifiers)
            if lanes is not None and "shared" in modifiers:
                conflicts.append(_passes(lanes, size))
            # one address for all lanes is one sector
            elif lanes is not None and len(set(lanes)) > 1:
                use[base].append((size, _used(lanes, size)))
        # of the innermost
        begun = max((start for start, end in loops if start <= place <= end), default=None)
        parts = [part.strip() for part in operands.split(",")]
        values.follow(base, modifiers, parts, place, begun)
    return Accesses(max(conflicts, default=None), _widest(use["ld"]), _widest(use["st"]))


class _Registers:
    """The values of the registers, as far as they are known."""

    def __init__(self, threads: tuple[int, int, int]) -> None:
        x, y, z = threads
        count = min(_LANES, x * y * z)
        self._known: dict[str, _Value | None] = {
            "%tid.x": _Value(False, tuple(lane % x for lane in range(count))),
            "%tid.y": _Value(False, tuple(lane // x % y for lane in range(count))),
            "%tid.z": _Value(False, tuple(lane // (x * y) for lane in range(count))),
            "%laneid": _Value(False, tuple(range(count))),
        }
        for name, size in zip("xyz", threads, strict=True):
            self._known[f"%ntid.{name}"] = _Value(False, (size,) * count)
            self._known[f"%ctaid.{name}"] = _Value(False, (0,) * count)
        self._count = count
        self._assigned: dict[str, int] = {}
        """Where a register was assigned last."""

    def address(self, operands: str) -> tuple[int, ...] | None:
        """Lanes' addresses of an access, without their common part; None where unknown."""
        found = _ADDRESS.search(operands)
        value = self._read(found["base"]) if found else None
        return value.lanes if value else None

    def follow(
        self, base: str, modifiers: list[str], operands: list[str], place: int, loop: int | None
    ) -> None:
        """Take in an instruction at a place, in a loop that begins at another, or in none."""
        target = operands[0]
        next_round = loop is not None and self._assigned.get(target, place) < loop
        if target.startswith("%") and not next_round:
            self._known[target] = self._result(base, modifiers, operands)
            self._assigned[target] = place

    def _result(self, base: str, modifiers: list[str], operands: list[str]) -> _Value | None:
        if base == "ld":
            # All lanes load the same where they load it from the same address.
            lanes = (0,) if "param" in modifiers else self.address(operands[1])
            return self._uniform() if lanes is not None and len(set(lanes)) == 1 else None
        given = [self._read(operand) for operand in operands[1:]]
        if None in given or any(modifier.startswith(("f", "bf")) for modifier in modifiers):
            return None
        values = [value for value in given if value is not None]
        if base in _COPIES:
            return values[0]
        if base in ("add", "sub"):
            return self._sum(values[0], values[1], -1 if base == "sub" else 1)
        if base == "mul" and "hi" not in modifiers:
            return self._product(values[0], values[1])
        if base == "mad" and "hi" not in modifiers:
            product = self._product(values[0], values[1])
            return product and self._sum(product, values[2], 1)
        if base == "shl" and not values[1].relative and values[1].uniform:
            return self._product(
                values[0], _Value(False, tuple(1 << lane for lane in values[1].lanes))
            )
        if base in _EXACT:
            return self._exactly(base, values)
        return self._uniform_result(values)

    def _read(self, operand: str) -> _Value | None:
        if operand in self._known:
            return self._known[operand]
        if _INTEGER.match(operand):
            return _Value(False, (int(operand, 0),) * self._count)
        if operand.startswith("%") and not operand.startswith(("%nctaid", "%gridid", "%nwarpid")):
            return None
        return self._uniform()

    def _uniform(self) -> _Value:
        """Unknown, and the same for all lanes."""
        return _Value(True, (0,) * self._count)

    def _sum(self, left: _Value, right: _Value, sign: int) -> _Value:
        lanes = tuple(a + sign * b for a, b in zip(left.lanes, right.lanes, strict=True))
        return _Value(left.relative or right.relative, lanes)

    def _product(self, left: _Value, right: _Value) -> _Value | None:
        if right.relative or not right.uniform:
            left, right = right, left
        if right.relative or not right.uniform:
            if left.relative or right.relative:
                return self._uniform_result([left, right])
            products = (a * b for a, b in zip(left.lanes, right.lanes, strict=True))
            return _Value(False, tuple(products))
        return _Value(left.relative, tuple(a * right.lanes[0] for a in left.lanes))

    def _exactly(self, base: str, values: list[_Value]) -> _Value | None:
        if any(value.relative for value in values):
            return self._uniform_result(values)
        try:
            return _Value(
                False,
                tuple(
                    _EXACT[base](*lanes) for lanes in zip(*(v.lanes for v in values), strict=True)
                ),
            )
        except (ArithmeticError, ValueError, TypeError):
            return None

    def _uniform_result(self, values: list[_Value]) -> _Value | None:
        """Return a value that is the same for all lanes if all its parts are; else None."""
        return self._uniform() if all(value.uniform for value in values) else None


def _loops(lines: list[str]) -> list[tuple[int, int]]:
    """The first and the last line of each loop: a label, and a branch back to it."""
    labels = {found[1]: place for place, line in enumerate(lines) if (found := _LABEL.match(line))}
    branches = [
        (place, found[1]) for place, line in enumerate(lines) if (found := _BRANCH.match(line))
    ]
    return [
        (labels[target], place) for place, target in branches if labels.get(target, place) < place
    ]


def _widest(use: list[tuple[int, float]]) -> float | None:
    """The worst of the widest accesses: narrower ones beside them are heads and tails."""
    widest = max((size for size, _ in use), default=0)
    return min((share for size, share in use if size == widest), default=None)


def _bytes(opcode: str, modifiers: list[str]) -> int:
    """Return what one lane reads or writes."""
    widths = _WIDTH.findall(opcode)
    vector = next((int(modifier[1]) for modifier in modifiers if modifier in ("v2", "v4", "v8")), 1)
    return int(widths[-1]) // 8 * vector if widths else _WORD


def _passes(addresses: tuple[int, ...], size: int) -> int:
    """Passes of a shared access: the words of the busiest bank."""
    together = _LANES if size <= _WORD else _LANES * _WORD // size
    worst = 1
    for first in range(0, len(addresses), together):
        group = addresses[first : first + together]
        words = {
            (address + place) // _WORD
            for address in group
            for place in range(0, max(size, 1), _WORD)
        }
        banks = [word % _BANKS for word in words]
        worst = max(worst, *(banks.count(bank) for bank in set(banks)))
    return worst


def _used(addresses: tuple[int, ...], size: int) -> float:
    """The share of the touched sectors that lanes access, if a tensor begins with one."""
    used = {address + place for address in addresses for place in range(size)}
    return len(used) / (_SECTOR * len({place // _SECTOR for place in used}))
