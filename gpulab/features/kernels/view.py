"""What the compiler made of the kernels of each variant, and in one line what they have more or
less than others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpulab.core.payloads import KernelCode
from gpulab.core.units import byte_count, seconds
from gpulab.draw.blocks import Block, Group, Text, columns_table
from gpulab.draw.canvas import fit
from gpulab.features.kernels.differences import Change, KernelDifference, differences
from gpulab.features.kernels.instructions import ALL, MATRIX
from gpulab.report.report import RunReport
from gpulab.scenario import KiB

_MOST_CHANGES, _WIDEST_NAME, _LANES = 6, 20, 32
_ALWAYS = ("registers", "occupancy")
"""Said even where more telling ones fill the line."""
_WORDS = {
    "mma": "mma instructions",
    "wgmma": "wgmma instructions",
    "tcgen05": "tcgen05 instructions",
    "async_copy": "asynchronous copies",
    "bulk_copy": "bulk copies",
    "local_load": "local loads",
    "local_store": "local stores",
    "atomic": "atomics",
    "shuffle": "shuffles",
    "barrier": "barriers",
    "divergent_branch": "divergent branches",
    "loop": "loops",
    "branch": "branches",
    "fma": "FMAs",
    "add_or_multiply": "adds and multiplies",
    "special": "special functions",
    "read_only_load": "read-only loads",
    "threads": "threads a block",
    "all": "instructions",
}
_ONE = {
    "adds and multiplies": "add or multiply",
    "asynchronous copies": "asynchronous copy",
    "bulk copies": "bulk copy",
    "branches": "branch",
    "divergent branches": "divergent branch",
}
_ACCESSES = {
    "load": "loads",
    "store": "stores",
    "shared_load": "shared loads",
    "shared_store": "shared stores",
}


def kernels(report: RunReport) -> Block | None:
    """The kernels of a run's variants, and their differences; None where it has none."""
    of_variants = {variant.name: variant.kernels for variant in report.variants if variant.kernels}
    if not of_variants:
        return None
    shown = {variant.name: seconds(time.value) for variant, time in report.timed}
    differences = {
        variant.name: variant.kernel_difference
        for variant in report.variants
        if variant.kernel_difference
    }
    return _page(of_variants, differences, times=shown, per=report.per)


def kernel_page(
    of_variants: Mapping[str, Sequence[KernelCode]], against: Mapping[str, str | None]
) -> Block | None:
    """The same without a run: of kernels that were compiled only. `against` as in `differences`."""
    of_variants = {name: codes for name, codes in of_variants.items() if codes}
    if not of_variants:
        return None
    return _page(of_variants, differences(of_variants, against))


def _page(
    of_variants: Mapping[str, Sequence[KernelCode]],
    differences: Mapping[str, KernelDifference],
    *,
    times: Mapping[str, str] | None = None,
    per: str = "step",
) -> Block:
    """A row a variant, its instructions by class, and a line for each difference."""
    table = columns_table()
    pipelined = any(code.stages is not None for codes in of_variants.values() for code in codes)
    launch = ["warps", "stages"] if pipelined else []
    times = None if pipelined else times  # the line has no room for both
    table.add_column(
        "kernels" if pipelined else "kernels of a variant", overflow="fold", min_width=7
    )
    for head in [f"time/{per}"] * bool(times) + [
        *launch,
        "registers",
        "spilled",
        "shared",
        "occupancy",
    ]:
        table.add_column(head, justify="right", no_wrap=True)
    for name, codes in of_variants.items():
        shown = [(times or {}).get(name, "")] if times else []
        shown += _launch(codes) if pipelined else []
        table.add_row(*(Text(cell) for cell in (name, *shown, *_resources(codes))))
    first = next(code for codes in of_variants.values() for code in codes)
    parts: list[Block] = [table]
    note = "nothing is counted: nvdisasm, which reads machine code, is not there"
    if any(code.instructions for codes in of_variants.values() for code in codes):
        mixes = [(name, _mix(name, codes)) for name, codes in of_variants.items()]
        parts += ["", _named(mixes, "dim")]
        note = f"counted in the SASS for {first.arch}, each instruction once, however often it runs"
    if differences:
        lines = [
            (name, f"against {each.against}: {difference_words(each)}")
            for name, each in differences.items()
        ]
        parts += ["", _named(lines, "")]
    return Group(*parts, Text(note, "dim"))


def _named(lines: Sequence[tuple[str, str]], style: str) -> Group:
    """Names, and what is said of each after it."""
    widest = min(_WIDEST_NAME, max(len(name) for name, _ in lines))
    texts = []
    for name, words in lines:
        text = Text(f"{fit(name, widest):{widest}}  ", f"bold {style}".rstrip())
        texts.append(text.append(words, "not bold"))
    return Group(*texts)


def difference_words(difference: KernelDifference) -> str:
    """Return what changes, the most telling first: `128-bit loads 0 → 4; registers 32 → 64`."""
    said = difference.changes
    if not said:
        return "the same code and launch"
    telling = [change for change in said if change.what not in _ALWAYS]
    last = [change for change in said if change.what in _ALWAYS]
    kept = [*telling[: max(1, _MOST_CHANGES - len(last))], *last]
    more = f"; {len(said) - len(kept)} more" if len(said) > len(kept) else ""
    return f"{'; '.join(map(change_words, kept))}{more}"


def change_words(change: Change) -> str:
    """One figure before and after."""
    what, before, after = change.what, change.before, change.after
    if what in ("load_use", "store_use"):
        kind = "loaded" if what == "load_use" else "stored"
        return f"used of each sector {kind} {_percent(before)} → {_percent(after)} %"
    if what == "occupancy":
        return f"occupancy {_percent(before)} → {_percent(after)} %"
    if what == "bank_conflicts":
        return f"bank conflicts {_ways(before)} → {_ways(after)}"
    if what in ("spill_bytes", "shared_bytes"):
        word = "spilled registers" if what == "spill_bytes" else "shared memory"
        return f"{word} {_size(before or 0)} → {_size(after or 0)}"
    if what == ALL and not after:
        return "other code"
    if what == ALL and before == after:
        return f"{after or 0:g} instructions in both, with other operands"
    return f"{instruction_words(what)} {before or 0:g} → {after or 0:g}"


def _mix(variant: str, codes: Sequence[KernelCode]) -> str:
    """The instructions of a variant's kernels, each kernel once."""
    by_name = {code.name: code for code in codes}
    if list(by_name) == [variant]:
        return instruction_mix(codes[0])
    return "; ".join(f"{name} {instruction_mix(code)}" for name, code in by_name.items())


def instruction_mix(code: KernelCode) -> str:
    """The instructions of a kernel by class, those first that move data."""
    counts = {kind: count for kind, count in code.instructions.items() if kind != ALL}
    order = sorted(counts, key=lambda kind: (not _moves(kind), -counts[kind]))
    classes = ", ".join(
        f"{counts[kind]} {_singular(instruction_words(kind), counts[kind])}" for kind in order
    )
    return f"{code.instructions.get(ALL, 0)} instructions: {classes}".removesuffix(": ")


def instruction_words(kind: str) -> str:
    """Return what a class of instructions is called."""
    access, _, bits = kind.rpartition("_")
    if access in _ACCESSES:
        return f"{bits}-bit {_ACCESSES[access]}"
    return _WORDS.get(kind, kind.replace("_", " "))


def _moves(kind: str) -> bool:
    return kind.rpartition("_")[0] in _ACCESSES or kind in ("async_copy", "bulk_copy", *MATRIX)


def _singular(words: str, count: int) -> str:
    return words if count != 1 else _ONE.get(words, words.removesuffix("s"))


def _launch(codes: Sequence[KernelCode]) -> list[str]:
    """Return the most warps of a block and the most stages among the kernels of a variant."""
    warps = [code.threads // _LANES for code in codes if code.threads]
    stages = [code.stages for code in codes if code.stages is not None]
    return [str(max(warps, default="")), str(max(stages, default=""))]


def _resources(codes: Sequence[KernelCode]) -> list[str]:
    """Return what the kernels of a variant need at most: registers, spills, shared memory, and the
    least occupancy.
    """
    occupancy = ""
    known = [code for code in codes if code.occupancy is not None]
    if known:
        worst = min(known, key=lambda code: code.occupancy or 0.0)
        occupancy = f"{_percent(worst.occupancy)} %"
        if (worst.occupancy or 0.0) < 1:
            occupancy += f" ({worst.limiter})"
    return [
        str(max(code.registers for code in codes)),
        _size(max(code.spill_bytes for code in codes)),
        _size(max(code.shared_bytes for code in codes)),
        occupancy,
    ]


def _size(amount: float) -> str:
    return f"{amount:.0f} B" if amount < KiB else byte_count(int(amount))


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{100 * share:.3g}"


def _ways(passes: float | None) -> str:
    return "none" if passes is None or passes <= 1 else f"{passes:g}-way"
