"""Which rank is late, and why: how often is that right?

Jobs of 2, 4 and 8 gloo ranks are followed as any program is. Each goes through planted cases, in
which one rank takes longer in its loader, forward, backward or garbage collector, or has other work
on its CPU, or all wait for one large collective; and through clean cases, in which all ranks differ
at random. The recorded run is cut into its cases. Its bill is not: that other work has a CPU only
the bill says, so of these cases the rank counts alone.

    python benchmarks/late_rank.py [--ranks 2,4,8] [--steps 40] [--seed 0] [--keep FOLDER]

Under ten minutes on two cores.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from msgspec.structs import replace

from gpulab.core.run_file import read_run_file
from gpulab.features.late.analysis import analysed
from gpulab.features.late.events import Collectives
from gpulab.features.late.timelines import Timelines

PLANTED = {
    2: ("loader", "forward", "backward", "gc", "cpu stolen", "slow"),
    4: ("loader", "forward", "backward", "gc", "cpu stolen", "slow"),
    8: ("loader", "forward", "backward", "gc", "slow"),
}
CAUSES = {"loader": "loader", "forward": "other", "backward": "backward", "gc": "gc"}
CLEAN = {2: 7, 4: 7, 8: 6}
JOB = """
import gc, json, os, random, subprocess, sys, time
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

cases, steps, seed = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
plant, mine = "", False
PART_S, MORE_S, WORK_S = 0.02, 0.03, 0.016 / ranks
HOG = "import os; os.sched_setaffinity(0, {1})\\nwhile True: pass"

def take(part):
    seconds = PART_S * random.uniform(0.9, 1.1)
    if mine and plant == part:
        seconds += MORE_S
    ends = time.thread_time() + WORK_S  # computes, then sleeps
    while time.thread_time() < ends:
        pass
    time.sleep(max(0.0, seconds - WORK_S))

class Rows(Dataset):
    def __len__(self):
        return 8 * steps

    def __getitem__(self, index):
        if index % 8 == 0:
            take("loader")
        return torch.full((64,), float(index % 7))

class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        take("forward")
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        take("backward")
        return gradient

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(64, 256), torch.nn.Linear(256, 256)
        self.c = torch.nn.Linear(256, 1)

    def forward(self, x):
        return self.c(Slow.apply(torch.relu(self.b(torch.relu(self.a(x))))))

class Cell:
    pass

model = torch.nn.parallel.DistributedDataParallel(Net(), bucket_cap_mb=0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
large = torch.ones(8 << 20)
gc.collect()
gc.freeze()
for number, (plant, who) in enumerate(cases):
    mine, hogs, heap = rank == who, [], []
    random.seed(1000 * seed + number * ranks + rank)
    if plant == "cpu stolen":
        os.sched_setaffinity(0, {1 if mine else 0})
        if mine:
            hogs = [subprocess.Popen([sys.executable, "-S", "-c", HOG]) for _ in range(3)]
    if plant == "gc" and mine:
        for _ in range(150_000):
            cell = Cell()
            cell.itself = cell
            heap.append(cell)
    dist.barrier()
    begun = time.monotonic()
    for batch in DataLoader(Rows(), batch_size=8):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        if plant == "gc" and mine:
            gc.collect()
        if plant == "slow":
            dist.all_reduce(large)  # slow
    dist.barrier()
    if rank == 0:
        with open(f"cases-{ranks}.jsonl", "a") as file:
            print(json.dumps([number, begun, time.monotonic()]), file=file)
    for hog in hogs:
        hog.kill()
        hog.wait()
    os.sched_setaffinity(0, {0, 1})
dist.barrier()
dist.destroy_process_group()
"""


def cases_of(ranks, seed):
    """What is planted, and in which rank, another one by each seed; clean ones in between."""
    planted = [(plant, (1 + seed + 3 * at) % ranks) for at, plant in enumerate(PLANTED[ranks])]
    clean = [("", -1)] * CLEAN[ranks]
    cases = []
    while planted or clean:
        cases += planted[:1] + clean[:1]
        planted, clean = planted[1:], clean[1:]
    return [("", -1), *cases]  # the first one warms up, and does not count


def followed(folder, ranks, cases, steps, seed):
    """The run file of the job, and when its cases began and ended."""
    (folder / "job.py").write_text(JOB)
    torchrun = Path(sys.executable).with_name("torchrun")
    run_file = folder / f"ranks-{ranks}.jsonl"
    gpulab = [sys.executable, "-m", "gpulab", "--run", "--telemetry", "off", "--profile", "off"]
    job = [torchrun, "--nproc-per-node", ranks, "job.py", json.dumps(cases), steps, seed]
    command = [*gpulab, "--output", run_file, "--", *job]
    moments = folder / f"cases-{ranks}.jsonl"
    moments.unlink(missing_ok=True)
    with (folder / f"ranks-{ranks}.log").open("w") as log:
        subprocess.run(list(map(str, command)), cwd=folder, check=True, stdout=log, stderr=log)
    ended = [json.loads(line) for line in moments.read_text().splitlines()]
    return run_file, {number: (begun, end) for number, begun, end in ended}


def cut(events, begun, ended):
    """A job with what came between these moments."""
    timelines = Timelines()
    for event in events:
        timelines.add(
            replace(
                event,
                calls=[call for call in event.calls if begun < call.at < ended],
                spans=[span for span in event.spans if begun < span.begun < ended],
            )
        )
    return timelines


def right(plant, who, job):
    """Whether the rank is right, and the cause; of a clean case whether nobody is accused."""
    if plant == "slow":
        found = job.slow is not None and job.collectives[job.slow].line.startswith("job.py")
        return job.late is None, found
    if not plant:
        return job.late is None and job.slow is None, True
    if job.late is None:
        return False, False
    cause = CAUSES.get(plant, job.late.cause.value)
    return job.late.rank == who, job.late.rank == who and job.late.cause.value == cause


def words(job):
    parts = []
    if job.late is not None:
        late = job.late
        parts.append(
            f"rank {late.rank} {late.late_s * 1e3:5.1f} ms ({late.share:.0%}), last "
            f"{late.last:.0%}, {late.cause.value} {late.excess_s * 1e3:.1f} ms"
        )
    if job.slow is not None:
        slow = job.collectives[job.slow]
        parts.append(f"slow {slow.name} {(slow.transfer_s or 0) * 1e3:.1f} ms at {slow.line}")
    return "; ".join(parts) or "nobody"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    counts = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        folder.mkdir(exist_ok=True)
        os.environ["XDG_STATE_HOME"] = name
        for ranks in map(int, options.ranks.split(",")):
            cases = cases_of(ranks, options.seed)
            run_file, times = followed(folder, ranks, cases, options.steps, options.seed)
            events = [e for e in read_run_file(run_file).events if isinstance(e, Collectives)]
            for number, (plant, who) in enumerate(cases):
                if number == 0:
                    continue
                job = analysed(cut(events, *times[number]))
                rank, cause = right(plant, who, job)
                kind = "planted" if plant else "clean"
                counts[kind] += 1
                counts[f"{kind} rank"] += rank
                counts[f"{kind} cause"] += cause
                verdict = "right" if rank and cause else "rank only" if rank else "WRONG"
                planted = f"{plant} in {who}" if plant else "clean"
                step = f"{(job.step_s or 0) * 1e3:4.0f} ms"
                print(f"{ranks} ranks  {planted:16} {step}  {verdict:9}  {words(job)}", flush=True)
    print(
        f"planted {counts['planted']}: right rank {counts['planted rank']}, right cause "
        f"{counts['planted cause']}; clean {counts['clean']}: false alarms "
        f"{counts['clean'] - counts['clean rank']}"
    )


if __name__ == "__main__":
    main()
