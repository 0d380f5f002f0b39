"""Advice on the rows of a program's bill, by signs that are certain in what was recorded: each says
what was seen, what to change, and the lesson that shows it.

A sign has cases that others wrote, flawed and clean (tests/following/signs); what they say of it is
in the guide (findings). Without a sign a row and its line are the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

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
NOT_PERSISTENT, IN_PROCESS = "workers do not persist", "in this process"
ANOMALY = "anomaly detection is on"
Sign = Callable[[ProcessBill, BillReport], Advice | None]


def advice_of(report: BillReport) -> list[Advice]:
    """Return what is certain of the process that counts, the largest share first."""
    process = report.bills[0]
    advice = [
        replace(each, sign=name)
        for name, sign in SIGNS.items()
        if (each := sign(process, report)) is not None and each.share >= _LEAST
    ]
    return sorted(advice, key=lambda each: -each.share)[:_MOST]


def _largest(process: ProcessBill, of: str, *causes: str) -> tuple[BillRow | None, float]:
    """Return the largest row of these causes, and the share of the time of all of them."""
    rows = [row for row in process.rows if row.of == of and row.cause in causes]
    return next(iter(rows), None), sum(row.seconds for row in rows) / process.wall_s


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
    if not frames:
        return None
    again_s = sum(each.seconds * (each.count - 1) / each.count for each in frames)
    first = max(frames, key=lambda each: each.seconds)
    rows = (row for row in process.rows if row.cause == "compile" and row.file)
    return Advice(
        seen=f"{first.function} was compiled {first.count} times, since {first.reasons[0]}",
        share=again_s / process.wall_s,
        change="torch.compile(..., dynamic=True), sizes that are padded to a few, or numbers that "
        "change as tensors",
        lesson="dynamic_shapes",
        row=next(rows, None),
    )


def anomaly(process: ProcessBill, _: BillReport) -> Advice | None:
    """Autograd's anomaly detection is on while gradients are computed."""
    row, share = _largest(process, ANOMALY, "backward")
    return Advice(
        seen=f"anomaly detection is on in {seconds(share * process.wall_s)} of backward",
        share=share,
        change="torch.autograd.set_detect_anomaly(False); on for the step that is looked into",
        try_="no_anomaly_detection",
        row=_switch(process, "detect_anomaly(") or row,
    )


def float64(process: ProcessBill, _: BillReport) -> Advice | None:
    """Modules compute with parameters in fp64."""
    return Advice(
        seen=f"modules with parameters in fp64 run for {seconds(process.double_s)}",
        share=process.double_s / process.wall_s,
        change="model.float(), and torch.from_numpy(...).float() of what is read",
        lesson="precision",
        row=_first_of_torch(process),
    )


def epochs(process: ProcessBill, _: BillReport) -> Advice | None:
    """Workers of a loader are started anew for every epoch."""
    row, share = _largest(process, NOT_PERSISTENT, WORKERS, EPOCH)
    taken = seconds(share * process.wall_s)
    return Advice(
        seen=f"starting and ending workers of a DataLoader each epoch takes {taken}",
        share=share,
        change="DataLoader(..., persistent_workers=True), and one iterator for several epochs",
        lesson="input_pipeline",
        row=row,
    )


def main_loads(process: ProcessBill, _: BillReport) -> Advice | None:
    """Batches are made in the main process while other cores have nothing to do."""
    row, share = _largest(process, IN_PROCESS, "data")
    if share < _LOADS or process.cores < 2:
        return None
    taken = seconds(share * process.wall_s)
    workers = process.cores - 1
    return Advice(
        seen=f"batches are made in the main process for {taken}, and nothing else runs",
        share=share,
        change=f"what takes long at that line, or DataLoader(..., num_workers={min(4, workers)}, "
        "persistent_workers=True)",
        lesson="input_pipeline",
        row=row,
    )


def training_mode(process: ProcessBill, _: BillReport) -> Advice | None:
    """Modules record a graph, or are in training mode, and nothing is ever differentiated."""
    if process.differentiates or not process.ended:
        return None
    states = {"record a graph": process.graph_s, "are in training mode": process.training_s}
    what = [words for words, state_s in states.items() if state_s >= _LEAST * process.wall_s]
    return Advice(
        seen=f"modules {' and '.join(what)}, and no backward runs",
        share=max(states.values()) / process.wall_s,
        change="model.eval(), and with torch.inference_mode():",
        row=_first_of_torch(process),
    )


def threads(process: ProcessBill, report: BillReport) -> Advice | None:
    """torch computes with more threads than the process may use cores."""
    loaders = [each for each in report.bills if each.role == "loader worker"]
    whose = [(process, "torch"), *((each, "each worker of a DataLoader") for each in loaders)]
    for each, who in whose:
        if each.threads > each.cores > 0:
            cores = plural(each.cores, "core")
            is_main = each is process
            return Advice(
                seen=f"{who} computes with {each.threads} threads, on {cores}",
                change=f"torch.set_num_threads({each.cores if is_main else 1})",
                try_="threads" if is_main else "",
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
        seen=f"memory grows by {rate} a step, alike in three windows{left}",
        change="keep numbers (loss.item(), .detach().cpu()), and not tensors with their graph; "
        "bound what is kept",
    )


SIGNS: Mapping[str, Sign] = {
    sign.__name__: sign
    for sign in (
        recompiles,
        anomaly,
        float64,
        epochs,
        main_loads,
        training_mode,
        threads,
        memory,
    )
}


def lines(advice: Sequence[Advice], place: Callable[[BillRow], str]) -> Iterator[str]:
    """Yield each as two lines; `place` says where a row is."""
    for each in advice:
        share = f"{each.share:.0%}: " if each.share < 1 else ""
        where = f" ({place(each.row)})" if each.row and each.row.file else ""
        yield one_line(plain(f"{share}{each.seen}{where}"))
        lesson = f"; lesson {each.lesson}" if each.lesson else ""
        tries = f"; measure it: --try {each.try_}" if each.try_ else ""
        yield f"  change: {each.change}{lesson}{tries}"
