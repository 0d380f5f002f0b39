"""What differs between the kernels of two variants, the most telling first."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import msgspec

from gpulab.core.payloads import KernelCode
from gpulab.features.kernels.instructions import ALL, MATRIX

_INSTRUCTIONS = (
    *(f"{kind}_{bits}" for kind in ("load", "store") for bits in (256, 128, 96, 64, 32, 16, 8)),
    "async_copy",
    "bulk_copy",
    *(
        f"{kind}_{bits}"
        for kind in ("shared_load", "shared_store")
        for bits in (256, 128, 96, 64, 32, 16, 8)
    ),
    "atomic",
    "shuffle",
    "barrier",
    "branch",
    "fma",
    "add_or_multiply",
    "special",
    "read_only_load",
)
_WORST: dict[str, Callable[..., float | None]] = {
    "spill_bytes": max,
    "bank_conflicts": max,
    "load_use": min,
    "store_use": min,
    "shared_bytes": max,
    "threads": max,
    "stages": max,
    "registers": max,
    "occupancy": min,
}
_USUAL = {"bank_conflicts": 1}
_ORDER = (
    "kernels",
    *MATRIX,
    "spill_bytes",
    "bank_conflicts",
    "load_use",
    "store_use",
    "divergent_branch",
    "loop",
    "shared_bytes",
    "threads",
    "stages",
    *_INSTRUCTIONS,
    "registers",
    "occupancy",
)
"""What usually matters first."""
_FEWEST_SHARE = 0.005
"""Shares closer than this are equal as they are printed."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of a kernel, or a number of instructions by class, in one variant and in another.

    Of a whole variant: numbers of instructions are sums over its kernels, the others are those of
    the worst of them.
    """

    what: str
    before: float | None
    after: float | None


class KernelDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Kernels of a variant against another's; no changes where code and launch are alike."""

    against: str
    changes: list[Change]


def differences(
    kernels: Mapping[str, Sequence[KernelCode]], against: Mapping[str, str | None]
) -> dict[str, KernelDifference]:
    """By the variants that have kernels, from the second on: what differs from the variant in
    `against`.

    Where that is none, or has no kernels, it is the one above, as on a ladder.
    """
    names = [name for name, of_variant in kernels.items() if of_variant]
    differences = {}
    for above, name in itertools.pairwise(names):
        declared = against.get(name)
        other = declared if declared is not None and declared in names else above
        differences[name] = KernelDifference(
            against=other, changes=changes(kernels[other], kernels[name])
        )
    return differences


def changes(before: Sequence[KernelCode], after: Sequence[KernelCode]) -> list[Change]:
    """Empty where the kernels have the same code and launch."""
    if not before or not after:
        return []
    changed = []
    for what in _ORDER:
        old = _figure(before, what)
        new = _figure(after, what)
        if old is not None and new is not None and abs(old - new) >= _FEWEST_SHARE:
            changed.append(Change(what=what, before=old, after=new))
    if not changed and [kernel.digest for kernel in before] != [kernel.digest for kernel in after]:
        # Other operands or other instructions of no class: as many of them, perhaps.
        return [Change(what=ALL, before=_figure(before, ALL), after=_figure(after, ALL))]
    return changed


def _figure(kernels: Sequence[KernelCode], what: str) -> float | None:
    """The figure of the worst kernel, or the number of all its instructions of a class; None where
    it is not known.
    """
    if what == "kernels":
        return len(kernels)
    if what not in _WORST:
        return sum(kernel.instructions.get(what, 0) for kernel in kernels)
    values = [value for kernel in kernels if (value := getattr(kernel, what)) is not None]
    return _WORST[what](values, default=_USUAL.get(what))
