"""Instructions of machine code (SASS) by class; and theoretical occupancy.

Opcodes: CUDA Binary Utilities, "Instruction Set Reference".

Limits by compute capability: CUDA C++ Programming Guide, "Technical Specifications per Compute
Capability"; register allocation by warps in units of 256: CUDA occupancy calculator.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

ALL = "all"
"""The class that counts every instruction."""
_WIDTH = re.compile(r"\.[USBFusbf]?(8|16|32|64|96|128|256)\b")
_MATRICES = re.compile(r"(?:LDSM|STSM)\b.*?\.MT?88(?:\.([124]))?\b")
"""Of 8 x 8 elements of 16 bits: 32 bits of each lane."""
_ACCESSES = {
    "LDG": "load",
    "LD": "load",
    "STG": "store",
    "ST": "store",
    "LDS": "shared_load",
    "LDSM": "shared_load",
    "STS": "shared_store",
    "STSM": "shared_store",
    "LDL": "local_load",
    "STL": "local_store",
    "LDGSTS": "async_copy",
}
_MATRIX = re.compile(r"^(?P<memory>UTC)?(?P<kind>[A-Z])?(?P<group>G)?MMA$")
MATRIX = ("tcgen05", "wgmma", "mma")
"""Matrix instructions, newest first: Blackwell's, a warp group's (Hopper), a warp's."""
_CLASSES = {
    "fma": ("FFMA", "FFMA2", "DFMA", "HFMA2"),
    "add_or_multiply": ("FADD", "FMUL", "FADD2", "FMUL2", "DADD", "DMUL", "HADD2", "HMUL2"),
    "barrier": ("BAR",),
    "divergent_branch": ("BSSY",),
    "shuffle": ("SHFL", "REDUX"),
    "atomic": ("ATOM", "ATOMG", "ATOMS", "RED", "REDG"),
    "special": ("MUFU",),
    "bulk_copy": ("UBLKCP", "UTMALDG", "UTMASTG"),
}
_CLASS = {opcode: kind for kind, opcodes in _CLASSES.items() for opcode in opcodes}


def count_sass(lines: Sequence[str]) -> dict[str, int]:
    """Classes and their numbers, of instructions such as `@P0 LDG.E.128 R4, desc[UR4][R2.64]`."""
    counts: Counter[str] = Counter({ALL: len(lines)})
    for place, line in enumerate(lines):
        words = line.split()
        if words and words[0].startswith("@"):
            words = words[1:]
        if not words:
            continue
        opcode = words[0]
        operands = " ".join(words[1:])
        base = opcode.partition(".")[0]
        if base in _ACCESSES:
            counts[_access(_ACCESSES[base], opcode)] += 1
            counts["read_only_load"] += ".CONSTANT" in opcode
        elif base in ("BRA", "BRX", "JMP", "JMX", "CALL"):
            target = operands.split(",")[-1].strip()
            counts["loop" if _is_back(target, place) else "branch"] += 1
        elif base == "HFMA2":
            counts[_half_fma(operands)] += 1
        elif base in _CLASS:
            counts[_CLASS[base]] += 1
        elif matrix := _MATRIX.match(base):
            counts[_matrix_class(matrix)] += 1
    return {kind: count for kind, count in counts.items() if count and kind}


def _matrix_class(matrix: re.Match[str]) -> str:
    if matrix["memory"]:
        return "tcgen05"
    return "wgmma" if matrix["group"] else "mma"


def entry_body(ptx: str, entry: str) -> str:
    """The PTX between the braces of one kernel."""
    _, _, rest = ptx.partition(f".entry {entry}(")
    depth = 0
    start = rest.find("\n{")
    if start < 0:
        return ""
    for place in range(start, len(rest)):
        depth += {"{": 1, "}": -1}.get(rest[place], 0)
        if depth == 0 and rest[place] == "}":
            return rest[start:place]
    return rest[start:]


def _half_fma(operands: str) -> str:
    """The class of an HFMA2: with zeros it moves a constant, or only multiplies."""
    zeros = [operand.strip().lstrip("-") == "RZ" for operand in operands.split(",")]
    if zeros[1:3] == [True, True]:
        return ""
    return "add_or_multiply" if zeros[-1] else "fma"


def _access(kind: str, opcode: str) -> str:
    """The class of an access with its width in bits."""
    if matrices := _MATRICES.match(opcode):
        return f"{kind}_{32 * int(matrices[1] or 1)}"
    widths = _WIDTH.findall(opcode)
    bits = int(widths[-1]) if widths else 32
    return kind if kind == "async_copy" or kind.startswith("local") else f"{kind}_{bits}"


def _is_back(target: str, place: int) -> bool:
    """Return whether a branch goes back, to the beginning of a loop."""
    try:
        # an instruction has 16 bytes, since Volta
        return int(target.strip("`()"), 16) <= place * 16
    except ValueError:
        return False


_WARP = 32
_REGISTER_UNIT = 256
_SHARED_UNIT = 128
_RESERVED = 1024
"""Shared memory of each block that the system takes, since compute capability 8.0."""
_WARP_UNIT = 4
"""Warps are given registers in groups, one for each of the SM's partitions."""


class Limits(NamedTuple):
    """The most that an SM holds at once."""

    warps: int
    blocks: int
    shared_bytes: int
    registers: int = 65536


class Occupancy(NamedTuple):
    """Blocks on an SM at once, the share of the warps that it can hold, and what limits it."""

    blocks: int
    share: float
    limiter: str


LIMITS = {
    "sm_75": Limits(32, 16, 64 << 10),
    "sm_80": Limits(64, 32, 164 << 10),
    "sm_86": Limits(48, 16, 100 << 10),
    "sm_87": Limits(48, 16, 164 << 10),
    "sm_89": Limits(48, 24, 100 << 10),
    "sm_90": Limits(64, 32, 228 << 10),
    "sm_100": Limits(64, 32, 228 << 10),
    "sm_103": Limits(64, 32, 228 << 10),
    "sm_120": Limits(48, 24, 100 << 10),
}


def occupancy(arch: str, threads: int, registers: int, shared_bytes: int) -> Occupancy | None:
    """Compute the occupancy of a kernel with so many threads a block, registers a thread and bytes
    of shared memory a block.

    None for an architecture whose limits are not known. Where several things allow as many blocks,
    the first of threads, registers, shared memory and blocks is named.
    """
    limits = LIMITS.get(arch)
    if limits is None:
        return None
    warps = -(-threads // _WARP)
    reserved = 0 if arch == "sm_75" else _RESERVED
    shared = _up(shared_bytes + reserved, _SHARED_UNIT) if shared_bytes + reserved else 0
    of_warp = _up(max(1, registers) * _WARP, _REGISTER_UNIT)
    warps_with_registers = limits.registers // of_warp // _WARP_UNIT * _WARP_UNIT
    allowed = {
        "threads": limits.warps // warps,
        "registers": warps_with_registers // warps,
        "shared memory": limits.shared_bytes // shared if shared else limits.blocks,
        "blocks": limits.blocks,
    }
    limiter = min(allowed, key=allowed.__getitem__)
    return Occupancy(allowed[limiter], allowed[limiter] * warps / limits.warps, limiter)


def _up(amount: int, unit: int) -> int:
    return -(-amount // unit) * unit
