"""Where the seconds of a default run go: by stage, until its verdict stands, and until its end.

    python tests/benchmarks/stages.py [SCENARIO ...] [--device cpu] [--runs 1]     # batched_matmul without one
    python tests/benchmarks/stages.py RUN.jsonl ...                                # of runs that were measured before

Seconds are counted from the moment the command was typed; of a run file, from its first event. A default
batched_matmul has limits, which the last lines hold it to.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from gpulab.protocol.events import RunStarted, Samples, StageStarted, Stopped, WorkerDone
from gpulab.protocol.run_file import read_run_file

LIMITS_S = {("batched_matmul", "cpu"): {"end": 30.0}, ("batched_matmul", "cuda"): {"verdict": 8.0, "end": 15.0}}
"""By scenario and kind of device, for machines at rest: a CPU of two cores, a GPU of the H100's class."""
COMMAND, START, PROFILE_START, END = "command", "start", "start of the profile", "end"
"""Until the run exists, until its worker loads, until the second worker does, and after the last one is done."""


@dataclass(frozen=True)
class RunSeconds:
    """Seconds by stage in the order they were first entered, of the timed blocks, to the verdict, and to the end."""

    stages: dict[str, float]
    timed: float
    verdict: float | None
    end: float


def run_seconds(events, began=None):
    """Of one run. `began` is when its command was started, on the clock of the events."""
    first = next(event for event in events if isinstance(event, RunStarted)).t
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
    return RunSeconds(dict(stages), timed_seconds(events), verdict, events[-1].t - began)


def timed_seconds(events):
    """Of all timed blocks together."""
    batches = [event for event in events if isinstance(event, Samples)]
    return sum(
        time_s * steps
        for batch in batches
        for time_s, steps in zip(batch.times_s, batch.steps or [1] * len(batch.times_s), strict=True)
    )


def default_run(scenario, device, *flags):
    """A run in a fresh process with nothing but its device and its run file chosen; its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        command = [sys.executable, "-m", "gpulab", "--run", scenario, "--device", device, "--output", str(path), *flags]
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


def judgements(scenario, device, seconds):
    """(what, limit, whether it holds) for each limit that there is."""
    for name, limit_s in LIMITS_S.get((scenario, device.partition(":")[0]), {}).items():
        measured_s = seconds.verdict if name == "verdict" else seconds.end
        yield name, limit_s, measured_s is not None and measured_s <= limit_s


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="*", default=["batched_matmul"], metavar="SCENARIO|RUN.jsonl")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    held = True
    for what in options.what:
        if what.endswith(".jsonl"):
            print(what, *lines(run_seconds(read_run_file(Path(what)).events)), sep="\n")
            continue
        for number in range(options.runs):
            seconds = default_run(what, options.device)
            print(f"{what} on {options.device}, run {number + 1}", *lines(seconds), sep="\n", flush=True)
            for name, limit_s, holds in judgements(what, options.device, seconds):
                print(f"  {name} within {limit_s:.0f} s: {'yes' if holds else 'NO'}", flush=True)
                held = held and holds
    return not held


if __name__ == "__main__":
    sys.exit(main())
