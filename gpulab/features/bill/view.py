"""The bill of a program in a table: seconds, share of the process's time, cause, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from gpulab.core.text import one_line, plain
from gpulab.core.units import byte_count, plural, seconds
from gpulab.draw.blocks import Block, Fitted, Group, Text, columns_table
from gpulab.draw.canvas import fit
from gpulab.features.bill.report import COUNTED, PROGRAM, WORKER
from gpulab.features.bill.result import OTHERS, BillReport, BillRow, ProcessBill, StepKind
from gpulab.features.bill.signs import IN_PROCESS, lines
from gpulab.report.report import RunReport

_MOST_ROWS, _MOST_SO_FAR, _MOST_OF_OTHERS, _MOST_BILLS = 15, 6, 4, 9
_MOST_RANKS, _MOST_OF_RANKS = 4, 8
_SOURCE, _FIGURES = 24, 24
"""Cells of the text of a line, at least, and of the columns before the cause."""
_BESIDE = 0.5
"""Of the CPU time of another thread, that the main one waits."""
_FEWEST = 8
"""Steps of a kind that are spoken of."""
_MOST_THREADS, _MOST_KINDS = 4, 4
_WORDS = {
    "": "at the line",
    "torch": "torch",
    "import": "import",
    "compile": "compile",
    "autotune": "tune kernels",
    "data": "load data",
}
METHOD = (
    "sampled stack of the main thread (the innermost line of the program, or else of a package); "
    "counted: garbage collection, preempted (others had the CPU)"
)


def bill(report: RunReport) -> Block | None:
    """Return the bills of a program; None of a run without one."""
    part: BillReport | None = report.get("bill")
    if part is None:
        return None
    first, *others = part.bills
    # first: below the rows it is out of sight
    blocks: list[Block] = ["", *(Text(line, "yellow") for line in lines(part.advice, where))]
    blocks.append(_table(first, _MOST_ROWS))
    blocks += _facts(first)
    sampling = f"sampling took {first.sampling_s / first.wall_s:.1%}"
    blocks.append(Text(f"{METHOD}; {sampling}", "dim"))
    ranks = [each for each in part.bills if each.rank is not None and each.role == PROGRAM]
    if len(ranks) > 1:
        blocks += ["", _by_rank(ranks)]
        others = [each for each in others if each not in ranks]
    for each in others[: _MOST_BILLS - 1]:
        blocks += ["", _table(each, _MOST_OF_OTHERS)]
    if len(others) >= _MOST_BILLS:
        blocks.append(Text(f"and {plural(len(others) - _MOST_BILLS + 1, 'more bill')}: --json"))
    return Group(*blocks)


def bill_so_far(report: RunReport) -> Block | None:
    """Return the largest rows of the process that counts; None where there are none yet."""
    part: BillReport | None = report.get("bill")
    return _table(part.bills[0], _MOST_SO_FAR) if part else None


def name_of(process: ProcessBill) -> str:
    """Return whose bill it is."""
    name = process.role if process.processes == 1 else plural(process.processes, process.role)
    if process.rank is not None:
        name += f" of rank {process.rank}" if process.role == WORKER else f", rank {process.rank}"
    return name


def where(row: BillRow) -> str:
    """Return the line, or lines, and the function of a row."""
    if not row.file:
        return ""
    place = PurePath(row.file).name
    if row.lines:
        place += ":" + ",".join(map(str, row.lines))
    return one_line(plain(f"{place} {row.function}".strip()))


def cause_of(row: BillRow, *, waits_too: bool = True) -> str:
    """Return the cause in words; `waits_too`: and whether it is mostly waiting."""
    words = _WORDS.get(row.cause, row.cause)
    if row.cause in ("data", "start or end data workers", "first batch of an epoch"):
        words += ", in this process" if row.of == IN_PROCESS else ""
    elif row.cause == "import" or (row.of and row.cause != ""):
        words += f" {row.of}" if row.cause == "import" else f", called by {row.of}"
    elif row.of:
        words = f"in {row.of}"
    if row.cause == "backward" and row.of:
        words = f"backward: {row.of}"
    # a short row between two waits has half of each beside it
    if waits_too and row.waited_s > 0.8 * row.seconds:
        words += ", waiting"
    return plain(words)


def _table(process: ProcessBill, most: int) -> Block:
    so_far = "" if process.ended else " so far"
    heading = Text(f"where the {seconds(process.wall_s)} of the {name_of(process)} went{so_far}")
    return Group(heading, Fitted(lambda width: [_rows(process, most, width)]))


def _rows(process: ProcessBill, most: int, width: int) -> Block:
    """Return the table; the text of a line is cut to what is left beside its cause."""
    longest = max((len(cause_of(row)) for row in process.rows[:most]), default=0)
    source_width = max(_SOURCE, width - _FIGURES - longest)
    table = columns_table()
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("cause", no_wrap=True)
    table.add_column("line of the program", overflow="fold", min_width=24)
    for row in process.rows[:most]:
        style = "dim" if row.cause in COUNTED or row.cause == OTHERS else ""
        place = Text(where(row))
        if row.cause != "import" and (source := one_line(plain(row.source))):
            whose = f"{row.lines[0]}: " if len(row.lines) > 1 else ""
            place.append(f"\n{fit(whose + source, source_width)}", "dim")
        share = f"{row.seconds / process.wall_s:.1%}"
        error = f" ±{row.error_s:.2f}" if row.error_s >= 0.01 else ""
        table.add_row(f"{row.seconds:.2f}{error}", share, Text(cause_of(row), style), place)
    left = sum(row.seconds for row in process.rows[most:])
    if left:
        rows = plural(len(process.rows) - most, "more row")
        table.add_row(f"{left:.2f}", f"{left / process.wall_s:.1%}", Text(rows, "dim"), "")
    return table


def _by_rank(ranks: Sequence[ProcessBill]) -> Block:
    """Return the rows of all ranks beside each other, those that differ most first."""
    ranks = sorted(ranks, key=lambda each: each.rank or 0)
    found: dict[tuple[str, str], list[float]] = {}
    for place, process in enumerate(ranks):
        for row in process.rows:
            function = one_line(plain(f"{PurePath(row.file).name} {row.function}".strip()))
            each = found.setdefault((cause_of(row, waits_too=False), function), [0.0] * len(ranks))
            each[place] += row.seconds
    differing = sorted(found.items(), key=lambda row: min(row[1]) - max(row[1]))
    table = columns_table()
    for process in ranks[:_MOST_RANKS]:
        table.add_column(f"rank {process.rank}", justify="right", no_wrap=True)
    table.add_column("cause", overflow="fold", min_width=20)
    table.add_column("line of the program", overflow="fold", min_width=20)
    for (cause, function), taken in differing[:_MOST_OF_RANKS]:
        table.add_row(*(f"{each:.2f}" for each in taken[:_MOST_RANKS]), Text(cause), Text(function))
    left = f", the first {_MOST_RANKS} of them" if len(ranks) > _MOST_RANKS else ""
    return Group(Text(f"seconds of {len(ranks)} ranks{left}, where they differ most"), table)


def _facts(process: ProcessBill) -> Iterator[Text]:
    """Yield what else is known of it."""
    for frame in [frame for frame in process.compiled if frame.count > 1][:_MOST_OF_OTHERS]:
        place = f"{frame.function} ({PurePath(frame.file).name}:{frame.line})"
        yield Text(plain(f"{place} was compiled {frame.count} times, {seconds(frame.seconds)}:"))
        for reason in frame.reasons[:_MOST_OF_OTHERS]:
            yield Text(f"  again since {one_line(plain(reason.partition(' #')[0]))}")
    for kind in [kind for kind in process.steps if kind.count >= _FEWEST][:_MOST_KINDS]:
        yield Text(plain(_steps(kind)))
    steps = sum(kind.count for kind in process.steps)
    for words, by_step in (("memory", process.growth), ("device memory", process.device_growth)):
        grown = by_step.bytes_per_step * steps if by_step is not None else 0.0
        if by_step is not None and grown > 0.02 * (process.resident_bytes or 0):
            yield Text(f"{words} grows by {byte_count(by_step.bytes_per_step)} a step")
    if process.page_faults:
        yield Text(f"{plural(process.page_faults, 'page fault')} read a disk")
    if process.system_share > 0.2:
        yield Text(f"{process.system_share:.0%} of its CPU time is in the system's own code")
    for each in process.other_threads[:_MOST_THREADS]:
        if each.ran_s > 0.01 * process.wall_s:
            place = f"{cause_of(each.row, waits_too=False)} {where(each.row)}"
            words = f"thread {each.thread} took {seconds(each.ran_s)} of CPU, seen most {place}"
            if each.main_waited_s > _BESIDE * each.ran_s:
                words += f"; the main thread waited {seconds(each.main_waited_s)} meanwhile"
            yield Text(plain(words.rstrip()))


def _steps(kind: StepKind) -> str:
    """Say how long steps of a kind take, and where the slow ones are."""
    words = (
        f"{plural(kind.count, 'step')} ({kind.kind}): p50 {seconds(kind.p50_s)}, "
        f"p99 {seconds(kind.p99_s)}, longest {seconds(kind.longest_s)}"
    )
    sampled_s = sum(row.seconds for row in kind.rows)
    if not kind.slow or not sampled_s:
        return words
    first = kind.rows[0]
    share = min(1.0, first.seconds / kind.slow_s)
    place = f" {where(first)}" if first.file else ""
    cause = cause_of(first, waits_too=False)
    return (
        f"{words}; {kind.slow} over 2x p50 took {seconds(kind.slow_s)}, {share:.0%} {cause}{place}"
    )
