"""The lab's clocks beside other tools' in one process, in turn: ratios of ours over theirs, a line
of JSON each.

    python benchmarks/device/beside_other_tools.py [--device cuda:0] [--pairs 12]

The wall clock beside torch.utils.benchmark.Timer; on a GPU the device clock, cold, beside triton's
do_bench, and hot beside the replay of a CUDA graph of the same steps.
"""

import argparse
import json
import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))
import torch
from torch.utils.benchmark import Timer

from gpulab import Work
from gpulab.engine.build.build import Build
from gpulab.engine.measure.clock import WallClock
from gpulab.engine.measure.device_clock import DeviceClock
from gpulab.engine.processes.device import flusher, waiter

BLOCKS, GRAPH_STEPS, REPLAYS = 7, 20, 10


def steps_on(device):
    """By name: bound by launches, by memory, and by arithmetic."""
    on_gpu = device.type == "cuda"
    small = torch.rand(256, device=device)
    source = torch.rand(1 << (26 if on_gpu else 20), device=device)
    out = torch.empty_like(source)
    matrix = torch.randn(2048 if on_gpu else 256, 2048 if on_gpu else 256, device=device)
    product = torch.empty_like(matrix)

    def launches():
        for _ in range(10):
            small.add_(1)

    return {
        "launches": launches,
        "copy": lambda: out.copy_(source),
        "product": lambda: torch.mm(matrix, matrix, out=product),
    }


def in_turn(ours, theirs, pairs):
    """The median of ours over theirs, with the last of both in seconds."""
    ratios = []
    for pair in range(pairs):
        if pair % 2:
            their_s, our_s = theirs(), ours()
        else:
            our_s, their_s = ours(), theirs()
        ratios.append(our_s / their_s)
    return {"ratio": median(ratios), "our_s": our_s, "their_s": their_s}


def of_timer(clock, step, pairs):
    build, timer = Build(Work(step), 0.0, None), Timer("step()", globals={"step": step})
    steps, _ = clock.steps_per_block(build)
    return in_turn(
        lambda: median(clock.block(build, steps).time_s for _ in range(BLOCKS)),
        lambda: median(timer.timeit(steps).mean for _ in range(BLOCKS)),
        pairs,
    )


def of_do_bench(clock, step, pairs):
    from triton.testing import do_bench

    build = Build(Work(step), 0.0, None)
    return in_turn(
        lambda: median(clock.block(build, 20).time_s for _ in range(BLOCKS)),
        lambda: do_bench(step, return_mode="median") * 1e-3,
        pairs,
    )


def of_graph(clock, step, pairs):
    build = Build(Work(step), 0.0, None)
    graph = torch.cuda.CUDAGraph()
    step()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(GRAPH_STEPS):
            step()

    def replayed():
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        graph.replay()
        began.record()
        for _ in range(REPLAYS):
            graph.replay()
        ended.record()
        torch.cuda.synchronize()
        return began.elapsed_time(ended) * 1e-3 / (REPLAYS * GRAPH_STEPS)

    return in_turn(
        lambda: median(clock.block(build, GRAPH_STEPS).time_s for _ in range(BLOCKS)),
        lambda: median(replayed() for _ in range(BLOCKS)),
        pairs,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--pairs", type=int, default=12)
    options = parser.parse_args()
    device = torch.device(options.device)
    torch.set_num_threads(1)
    wait = waiter(device)
    for name, step in steps_on(device).items():
        tools = {"Timer": (WallClock(wait), of_timer)}
        # which no device clock sees as the host does
        if device.type == "cuda" and name != "launches":
            tools["do_bench"] = (DeviceClock(wait, flusher(device, 0)), of_do_bench)
            tools["CUDA graph"] = (DeviceClock(wait, None), of_graph)
        for tool, (clock, compare) in tools.items():
            print(
                json.dumps({"step": name, "tool": tool, **compare(clock, step, options.pairs)}),
                flush=True,
            )


if __name__ == "__main__":
    main()
