"""What the fold of a day-long run costs: 1,000,000 events, 5 Hz of telemetry, 10,000 log lines,
samples in between.

Prints, for runs from a thousandth of it up to all of it, the time per event, the memory that the
state holds, and the time of a live tick (a poll of 50 events and a report): time per event, memory
and tick must not grow with the length. So too for a device that is slowed down every 10 s and for
one whose readings stop after 10 s, up to a tenth of it.

    # 1,000,000 without an argument: about three minutes
    python benchmarks/fold.py [EVENTS]
"""

import gc
import random
import resource
import sys
import tracemalloc
from statistics import median
from time import perf_counter, process_time

from gpulab.core.events import Built, Log, Planned, RunStarted, Samples, StageStarted, WorkerReady
from gpulab.core.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.core.machine import Device
from gpulab.features.goodput.events import Phases
from gpulab.features.telemetry.events import Telemetry, TelemetryStarted
from gpulab.features.telemetry.report import TelemetryState
from gpulab.report.build import build_report, new_state

EVENTS, LOG_LINES, TICK_EVENTS, TICKS = 1_000_000, 10_000, 50, 20
NAMES = ("before", "after", "control")
BLOCKS_IN_BATCH, BATCHES_IN_EPOCH = 15, 100
HZ = 5
SLOWDOWN, SLOWDOWN_EVERY_S, STOP_S = 0x40, 10, 10.0
CONDITIONS = ("quiet", "slowed", "stopped")
FIELDS = (
    "sm",
    "occupancy",
    "tensor",
    "dram",
    "power",
    "sm_clock",
    "temperature",
    "memory_used",
    "worker_cpu",
    "rss",
)
KINDS = "tststststp"
"""Of ten events: telemetry, batches of samples, a window of phases."""


def beginning():
    variants = tuple(
        VariantInfo(name=name, against="before" * (name == "after") or None) for name in NAMES[:2]
    )
    subject = ScenarioFile(scenario="day", path="day.py", source_sha256="", variants=variants)
    yield RunStarted(t=0.0, request=RunRequest(job=Measure(subject=subject)), at="", host="")
    device = Device(kind="cuda", name="GPU", uuid="GPU-1")
    yield WorkerReady(t=0.0, pid=1, device=device, environment={})
    yield TelemetryStarted(t=0.0, gpu="GPU", uuid="GPU-1", limits={"power": 700.0})
    for name in NAMES[:2]:
        yield Built(t=0.0, variant=name, build_s=0.1, first_step_s=0.1, items=1.0)
    yield Planned(
        t=0.0, rounds=BATCHES_IN_EPOCH * BLOCKS_IN_BATCH // len(NAMES), epochs=8, floor=0.01
    )
    yield StageStarted(t=0.0, stage="measure")


def day(count, condition="quiet", t=0.0):
    """So many events in the order of a run; every log line, batch and reading as a run would send
    it.

    `condition` is "slowed" where a reading every 10 s is of a slowdown, and "stopped" where
    readings end after 10 s; `t` is when the first event comes.
    """
    noise = random.Random(0)
    batches, taken, every = 0, 0, EVENTS // LOG_LINES
    for number in range(count):
        if number % every == 0:
            yield Log(t=t, lines=[f"step {number} done"])
            continue
        match KINDS[number % 10]:
            case "t":
                t += 1 / HZ
                taken += 1
                if condition == "stopped" and t > STOP_S:
                    continue
                values = {field: 100 * noise.random() for field in FIELDS}
                slowed = condition == "slowed" and taken % (SLOWDOWN_EVERY_S * HZ) == 0
                yield Telemetry(
                    t=t,
                    since=t - 1 / HZ,
                    values=values,
                    reasons=SLOWDOWN if slowed else 0,
                    others=[],
                )
            case "s":
                yield batch(t, batches, noise)
                batches += 1
            case "p":
                yield Phases(t=t, variant="after", steps=10, seconds={"data": 0.1, "useful": 0.9})


def batch(t, number, noise):
    """Whole rounds of one epoch: every round has each of the names once."""
    rows, (epoch, place) = range(BLOCKS_IN_BATCH), divmod(number, BATCHES_IN_EPOCH)
    return Samples(
        t=t,
        names=NAMES,
        complete=epoch + (place == BATCHES_IN_EPOCH - 1),
        epoch=[epoch] * BLOCKS_IN_BATCH,
        round=[place * len(rows) + row // len(NAMES) for row in rows],
        variant=[row % len(NAMES) for row in rows],
        times_s=[1e-3 * (1 + 0.1 * noise.random()) for _ in rows],
        cpu_s=[1e-3] * BLOCKS_IN_BATCH,
        faults=[0] * BLOCKS_IN_BATCH,
        switches=[0] * BLOCKS_IN_BATCH,
        ended=[t + 0.01 * row for row in rows],
        steps=[10] * BLOCKS_IN_BATCH,
    )


def folded(count, condition):
    """The state after so many events, and the CPU time that the folding alone took."""
    state, spent = new_state(), 0.0
    for event in beginning():
        state.fold(event)
    pending = []
    for event in day(count, condition):
        pending.append(event)
        if len(pending) == 1000:
            spent += fold_all(state, pending)
    return state, spent + fold_all(state, pending)


def fold_all(state, pending):
    """Fold what is pending; returns the CPU time."""
    started = process_time()
    for event in pending:
        state.fold(event)
    pending.clear()
    return process_time() - started


def tick_s(state, condition):
    """A face's tick: what came in a quarter of a second, and the report of it."""
    times = []
    for _ in range(TICKS):
        events = [
            event for event in day(TICK_EVENTS, condition, state.t) if isinstance(event, Telemetry)
        ]
        started = perf_counter()
        for event in events:
            state.fold(event)
        build_report(state, live=True, now=state.t)
        times.append(perf_counter() - started)
    return median(times)


def main():
    most = int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS
    for condition in CONDITIONS:
        for count in (most // 1000, most // 100, most // 10, most):
            if count < most or condition == "quiet":
                print(row(count, condition, traced=count < most), flush=True)


def row(count, condition, *, traced):
    """What a run of so many events costs, in a line. Memory is traced in a second run, or else that
    of the process.
    """
    state, spent = folded(count, condition)
    tick = tick_s(state, condition)
    if traced:
        memory = f"{retained(count, condition) / 2**20:.1f} MiB held"
    else:
        memory = f"{peak_mib():.0f} MiB at most in the process"
    cost = f"{spent:7.2f} s, {spent / count * 1e6:6.1f} us an event, tick {tick * 1e3:5.1f} ms"
    return f"{condition:<7} {count:>9,} events: {cost}, {memory}"


def retained(count, condition):
    """Bytes that a state holds after so many events: allocations are traced while it is made once
    more.
    """
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    state, _ = folded(count, condition)
    gc.collect()
    size = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return size if state.part(TelemetryState).readings else 0


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
