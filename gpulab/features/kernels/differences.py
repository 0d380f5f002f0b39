"""What differs between the kernels of two variants, the most telling first."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from gpulab.core.payloads import KernelCode
from gpulab.features.kernels.instructions import MATRIX

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
    changed = [
        Change(what=what, before=old, after=new)
        for what, old, new in _figures(before, after)
        if old != new
        and not (old is not None and new is not None and 0 < abs(old - new) < _FEWEST_SHARE)
    ]
    if not changed and [kernel.digest for kernel in before] != [kernel.digest for kernel in after]:
        # Other operands or other instructions of no class: as many of them, perhaps.
        return [
            Change(
                what="all", before=_instructions(before)["all"], after=_instructions(after)["all"]
            )
        ]
    return changed


def _figures(
    before: Sequence[KernelCode], after: Sequence[KernelCode]
) -> Iterable[tuple[str, float | None, float | None]]:
    def both(
        what: str, of: Callable[[Sequence[KernelCode]], float | None]
    ) -> tuple[str, float | None, float | None]:
        return what, of(before), of(after)

    old = _instructions(before)
    new = _instructions(after)
    yield both("kernels", len)
    for kind in MATRIX:
        yield kind, old[kind], new[kind]
    yield both("spill_bytes", lambda kernels: max(kernel.spill_bytes for kernel in kernels))
    yield both(
        "bank_conflicts", lambda kernels: max(kernel.bank_conflicts or 1 for kernel in kernels)
    )
    for what in ("load_use", "store_use"):
        was = _least(before, what)
        now = _least(after, what)
        if was is not None and now is not None:
            yield what, was, now
    for kind in ("divergent_branch", "loop"):
        yield kind, old[kind], new[kind]
    yield both("shared_bytes", lambda kernels: max(kernel.shared_bytes for kernel in kernels))
    if all(kernel.threads for kernel in (*before, *after)):
        yield both("threads", lambda kernels: max(kernel.threads or 0 for kernel in kernels))
    if all(kernel.stages is not None for kernel in (*before, *after)):
        yield both("stages", lambda kernels: max(kernel.stages or 0 for kernel in kernels))
    for kind in _INSTRUCTIONS:
        yield kind, old[kind], new[kind]
    yield both("registers", lambda kernels: max(kernel.registers for kernel in kernels))
    was = _least(before, "occupancy")
    now = _least(after, "occupancy")
    if was is not None and now is not None:
        yield "occupancy", was, now


def _instructions(kernels: Sequence[KernelCode]) -> Counter[str]:
    return sum((Counter(kernel.instructions) for kernel in kernels), Counter())


def _least(kernels: Sequence[KernelCode], figure: str) -> float | None:
    values = [value for kernel in kernels if (value := getattr(kernel, figure)) is not None]
    return min(values, default=None)
