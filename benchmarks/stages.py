"""Where the seconds of a default run go: by stage, until its verdict stands, and until its end.

    # batched_matmul without one
    python benchmarks/stages.py [SCENARIO ...] [--device cpu] [--runs 1]
    # ten lessons that compile nothing
    python benchmarks/stages.py --ten [--device cuda]
    # of runs that were measured before
    python benchmarks/stages.py RUN.jsonl ...

Seconds are counted from the moment the command was typed; of a run file, from its first event. A
last table has the medians of each scenario. What torch takes to be imported beyond two seconds is a
column, and not held against a limit.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic

from commands import GPULAB

from gpulab.core.events import (
    ProcessStarted,
    RunStarted,
    Samples,
    StageStarted,
    Stopped,
    WorkerDone,
)
from gpulab.core.run_file import read_run_file

TEN = [
    "batched_matmul",
    "memory_layout",
    "channels_last",
    "precision",
    "cache_footprint",
    "preallocation",
    "attention",
    "optimizer_step",
    "gradient_accumulation",
    "recomputation",
]
LIMITS_S = {"cpu": (6.0, 12.0), "cuda": (8.0, 15.0)}
"""Until the verdict and until the end, by kind of device, for machines at rest: a CPU of two cores,
a GPU of the H200's class.
"""
COMPILED = ["fused_softmax", "small_kernels", "layernorm_gelu", "training_step", "graph_breaks"]
COMPILED_S = 20.0, 30.0
LONG = ["compile_modes", "matmul_epilogue", "jax_jit"]
LONG_S = 60.0
"""Until the end of lessons that compile for longer than they measure."""
IMPORT_S = 2.0
COMMAND, START, PROFILE_START, END = "command", "start", "start of the profile", "end"
"""Until the run exists, until its worker loads, until the second worker does, and after the last
one is done.
"""


@dataclass(frozen=True)
class RunSeconds:
    """Seconds by stage in the order they were first entered, of the timed blocks, to the verdict,
    and to the end.
    """

    stages: dict[str, float]
    timed: float
    verdict: float | None
    end: float
    imports: float = 0.0
    """Of torch, in the first process."""


def run_seconds(events, began=None):
    """Of one run. `began` is when its command was started, on the clock of the events."""
    first = next(event for event in events if isinstance(event, RunStarted)).t
    imports = next(
        (
            event.startup_s.get("imports", 0.0)
            for event in events
            if isinstance(event, ProcessStarted)
        ),
        0.0,
    )
    began = first if began is None else began
    stages, stage, since, verdict = Counter({COMMAND: first - began}), START, first, None
    for event in events:
        match event:
            case StageStarted():
                stages[stage] += event.t - since
                stage, since = event.stage.value, event.t
            case WorkerDone():
                stages[stage] += event.t - since
                stage, since = PROFILE_START, event.t  # unless nothing starts any more
            case Stopped():
                verdict = event.t - began
    stages[END if stage == PROFILE_START else stage] += events[-1].t - since
    return RunSeconds(dict(stages), timed_seconds(events), verdict, events[-1].t - began, imports)


def timed_seconds(events):
    """Of all timed blocks together."""
    batches = [event for event in events if isinstance(event, Samples)]
    return sum(
        time_s * steps
        for batch in batches
        for time_s, steps in zip(
            batch.times_s, batch.steps or [1] * len(batch.times_s), strict=True
        )
    )


def default_run(scenario, device, *flags):
    """A run in a fresh process with nothing but its device and its run file chosen; its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        command = [*GPULAB, "--run", scenario, "--device", device, "--output", str(path), *flags]
        began = monotonic()
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return run_seconds(read_run_file(path).events, began)


def lines(seconds):
    """A table of one run: seconds and the share of the whole by stage."""
    for stage, stage_s in seconds.stages.items():
        yield f"  {stage:22} {stage_s:7.2f} s {stage_s / seconds.end:6.1%}"
    verdict = "no verdict" if seconds.verdict is None else f"verdict after {seconds.verdict:.1f} s"
    timed = f"timed blocks {seconds.timed:.1f} s, {seconds.timed / seconds.end:.1%}"
    yield f"  {verdict}, end after {seconds.end:.1f} s, of which {timed}"


def limits_of(scenario, device):
    """Seconds until the verdict and the end, None without a limit."""
    if scenario in LONG:
        return None, LONG_S
    return (
        COMPILED_S if scenario in COMPILED else LIMITS_S.get(device.partition(":")[0], (None, None))
    )


def judgements(scenario, device, seconds):
    """(what, limit, seconds, whether it holds) for each limit that there is, without a long import
    of torch.
    """
    beyond = max(0.0, seconds.imports - IMPORT_S)
    for name, limit_s, measured_s in zip(
        ("verdict", "end"), limits_of(scenario, device), (seconds.verdict, seconds.end), strict=True
    ):
        if limit_s is not None:
            counted_s = None if measured_s is None else measured_s - beyond
            yield name, limit_s, counted_s, counted_s is not None and counted_s <= limit_s


def medians(runs):
    """Of several runs of one scenario; a verdict only where each has one."""
    verdicts = [run.verdict for run in runs]
    return RunSeconds(
        stages={},
        timed=median(run.timed for run in runs),
        verdict=None if None in verdicts else median(verdicts),
        end=median(run.end for run in runs),
        imports=median(run.imports for run in runs),
    )


def table(runs, device):
    """A line for each scenario: medians, and whether they hold."""
    yield (
        f"{'scenario':22} {'verdict':>8} {'end':>8} {'timed':>7} {'import beyond 2 s':>18}  within"
    )
    for scenario, measured in runs.items():
        seconds = medians(measured)
        verdict = f"{'none' if seconds.verdict is None else f'{seconds.verdict:.1f} s':>8}"
        beyond = max(0.0, seconds.imports - IMPORT_S)
        held = [
            f"{limit_s:.0f} s {'yes' if holds else 'NO'}"
            for _, limit_s, _, holds in judgements(scenario, device, seconds)
        ]
        yield (
            f"{scenario:22} {verdict} {seconds.end:6.1f} s {seconds.timed:5.1f} s {beyond:16.1f} "
            f"s  {', '.join(held)}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="*", metavar="SCENARIO|RUN.jsonl")
    parser.add_argument("--ten", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    runs = {}
    for what in options.what or (TEN if options.ten else ["batched_matmul"]):
        if what.endswith(".jsonl"):
            print(what, *lines(run_seconds(read_run_file(Path(what)).events)), sep="\n")
            continue
        for number in range(options.runs):
            seconds = default_run(what, options.device)
            runs.setdefault(what, []).append(seconds)
            print(
                f"{what} on {options.device}, run {number + 1}",
                *lines(seconds),
                sep="\n",
                flush=True,
            )
    if runs:
        print(*table(runs, options.device), sep="\n", flush=True)
    judged = [
        holds
        for what, measured in runs.items()
        for *_, holds in judgements(what, options.device, medians(measured))
    ]
    return not all(judged)


if __name__ == "__main__":
    sys.exit(main())
