"""Advice on the rows of a program's bill, by signs that are certain in what was recorded: each says
what was seen, what to change, and the lesson that shows it.

A sign has cases that others wrote, flawed and clean (tests/following/signs); what they say of it is
in the guide (findings). Without a sign a row and its line are the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gpulab.core.text import one_line, plain
from gpulab.core.units import byte_count, plural, seconds
from gpulab.features.bill.result import Advice, BillReport, BillRow, ProcessBill

_LEAST, _LOADS = 0.05, 0.10
"""Of the time of a process: less is no advice; of what a loader takes in the main process."""
_MOST = 3
_RECOMPILED = 3
_A_MINUTE = 0.001
"""Of the memory that is available: slower growth is no advice."""
WORKERS, EPOCH = "start or end data workers", "first batch of an epoch"
NOT_PERSISTENT, IN_PROCESS, ANOMALY = (
    "workers do not persist",
    "in this process",
    "anomaly detection is on",
)


Sign = Callable[[ProcessBill, BillReport], Advice | None]


def advice_of(report: BillReport) -> list[Advice]:
    """Return what is certain of the process that counts, the largest share first."""
    process = report.bills[0]
    found = [advice for sign in SIGNS if (advice := sign(process, report)) is not None]
    return sorted(found, key=lambda advice: -advice.share)[:_MOST]


def _rows(process: ProcessBill, of: str, causes: Sequence[str]) -> list[BillRow]:
    return [row for row in process.rows if row.of == of and row.cause in causes]


def _seconds(rows: Sequence[BillRow]) -> float:
    return sum(row.seconds for row in rows)


def _first_of_torch(process: ProcessBill) -> BillRow | None:
    """Return where the program calls torch for longest."""
    rows = (row for row in process.rows if row.cause == "torch" or row.of == "a package")
    return next(rows, None)


def _switch(process: ProcessBill, *names: str) -> BillRow | None:
    """Return where the program's text has one of these calls."""
    for name, file, line in process.switches:
        if name in names:
            return BillRow(cause="", seconds=0.0, file=file, lines=[line])
    return None


def recompiles(process: ProcessBill, _: BillReport) -> Advice | None:
    """A function was compiled again and again, each time since a guard failed."""
    frames = [each for each in process.compiled if each.count >= _RECOMPILED and each.reasons]
    again_s = sum(each.seconds * (each.count - 1) / each.count for each in frames)
    if again_s < _LEAST * process.wall_s:
        return None
    first = max(frames, key=lambda each: each.seconds)
    rows = [row for row in process.rows if row.cause == "compile" and row.file]
    return Advice(
        sign="recompiles",
        seen=f"{first.function} was compiled {first.count} times, since {first.reasons[0]}",
        share=again_s / process.wall_s,
        change="torch.compile(..., dynamic=True), sizes that are padded to a few, or numbers that "
        "change as tensors",
        lesson="dynamic_shapes",
        row=rows[0] if rows else None,
    )


def anomaly(process: ProcessBill, _: BillReport) -> Advice | None:
    """Autograd's anomaly detection is on while gradients are computed."""
    rows = _rows(process, ANOMALY, ["backward"])
    taken_s = _seconds(rows)
    if taken_s < _LEAST * process.wall_s:
        return None
    return Advice(
        sign="anomaly",
        seen=f"anomaly detection is on in {seconds(taken_s)} of backward",
        share=taken_s / process.wall_s,
        change="torch.autograd.set_detect_anomaly(False); on for the step that is looked into",
        try_="no_anomaly_detection",
        row=_switch(process, "detect_anomaly(") or rows[0],
    )


def float64(process: ProcessBill, _: BillReport) -> Advice | None:
    """Modules compute with parameters in fp64."""
    if process.double_s < _LEAST * process.wall_s:
        return None
    return Advice(
        sign="float64",
        seen=f"modules with parameters in fp64 run for {seconds(process.double_s)}",
        share=process.double_s / process.wall_s,
        change="model.float(), and torch.from_numpy(...).float() of what is read",
        lesson="precision",
        row=_first_of_torch(process),
    )


def epochs(process: ProcessBill, _: BillReport) -> Advice | None:
    """Workers of a loader are started anew for every epoch."""
    rows = _rows(process, NOT_PERSISTENT, [WORKERS, EPOCH])
    taken_s = _seconds(rows)
    if taken_s < _LEAST * process.wall_s:
        return None
    return Advice(
        sign="epochs",
        seen=f"starting and ending workers of a DataLoader each epoch takes {seconds(taken_s)}",
        share=taken_s / process.wall_s,
        change="DataLoader(..., persistent_workers=True), and one iterator for several epochs",
        lesson="input_pipeline",
        row=rows[0],
    )


def loads_in_process(process: ProcessBill, _: BillReport) -> Advice | None:
    """Batches are made in the main process while other cores have nothing to do."""
    rows = _rows(process, IN_PROCESS, ["data"])
    taken_s = _seconds(rows)
    if taken_s < _LOADS * process.wall_s or process.cores < 2:
        return None
    workers = process.cores - 1
    return Advice(
        sign="main_loads",
        seen=f"batches are made in the main process for {seconds(taken_s)}, and nothing else runs",
        share=taken_s / process.wall_s,
        change=f"what takes long at that line, or DataLoader(..., num_workers={min(4, workers)}, "
        "persistent_workers=True)",
        lesson="input_pipeline",
        row=rows[0],
    )


def training_mode(process: ProcessBill, _: BillReport) -> Advice | None:
    """Modules record a graph, or are in training mode, and nothing is ever differentiated."""
    if process.differentiates:
        return None
    taken_s = max(process.graph_s, process.training_s)
    if not process.ended or taken_s < _LEAST * process.wall_s:
        return None
    what = []
    if process.graph_s >= _LEAST * process.wall_s:
        what.append("record a graph")
    if process.training_s >= _LEAST * process.wall_s:
        what.append("are in training mode")
    return Advice(
        sign="training_mode",
        seen=f"modules {' and '.join(what)}, and no backward runs",
        share=taken_s / process.wall_s,
        change="model.eval(), and with torch.inference_mode():",
        row=_first_of_torch(process),
    )


def threads(process: ProcessBill, report: BillReport) -> Advice | None:
    """torch computes with more threads than the process may use cores."""
    loaders = [each for each in report.bills if each.role == "loader worker"]
    for each, of in (
        (process, ""),
        *((worker, "each worker of a DataLoader ") for worker in loaders),
    ):
        if each.threads > each.cores > 0:
            words = f"{of}computes with {each.threads} threads, on {plural(each.cores, 'core')}"
            return Advice(
                sign="threads",
                seen=words if of else f"torch {words}",
                share=1.0,
                change=f"torch.set_num_threads({1 if of else each.cores})",
                try_="" if of else "threads",
                row=_switch(process, "set_num_threads(", "OMP_NUM_THREADS"),
            )
    return None


def memory(process: ProcessBill, _: BillReport) -> Advice | None:
    """Memory grows with every step, at the same rate in three windows."""
    growth = process.growth
    if growth is None or not process.available_bytes or not process.wall_s:
        return None
    steps = sum(kind.count for kind in process.steps)
    a_minute = growth.bytes_per_step * steps / process.wall_s * 60
    if a_minute < _A_MINUTE * process.available_bytes:
        return None
    rate = byte_count(growth.bytes_per_step)
    left = f"; if it goes on, full after {growth.steps_left:,} more" if growth.steps_left else ""
    return Advice(
        sign="memory",
        seen=f"memory grows by {rate} a step, alike in three windows{left}",
        share=1.0,
        change="keep numbers (loss.item(), .detach().cpu()), and not tensors with their graph; "
        "bound what is kept",
    )


SIGNS: Sequence[Sign] = (
    recompiles,
    anomaly,
    float64,
    epochs,
    loads_in_process,
    training_mode,
    threads,
    memory,
)


def lines(advice: Sequence[Advice], place: Callable[[BillRow], str]) -> Iterator[str]:
    """Yield each as two lines; `place` says where a row is."""
    for each in advice:
        share = f"{each.share:.0%}: " if each.share < 1 else ""
        where = f" ({place(each.row)})" if each.row and each.row.file else ""
        yield one_line(plain(f"{share}{each.seen}{where}"))
        lesson = f"; lesson {each.lesson}" if each.lesson else ""
        tries = f"; measure it: --try {each.try_}" if each.try_ else ""
        yield f"  change: {each.change}{lesson}{tries}"
