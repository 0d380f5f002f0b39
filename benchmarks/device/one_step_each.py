"""One step of each variant of lessons, for tools that watch a process: ncu, compute-sanitizer.

    python benchmarks/device/one_step_each.py [--smoke] SCENARIO.py...

Between cudaProfilerStart and Stop a kernel that only waits marks the beginning of each step. Prints
a line of JSON for each: scenario, variant, declared bytes, in that order.
"""

import argparse
import json
from pathlib import Path

import torch
from kernels_per_step import built

from gpulab.catalog.catalog import read_file

_WARM_STEPS = 3
MARK = "spin_kernel"
"""What the kernel of `torch.cuda._sleep` is called."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes")
    options = parser.parse_args()
    for path in options.paths:
        for name in read_file(path).scenario.variants:
            work = built(path, name, torch.device("cuda:0"), smoke=options.smoke)
            for _ in range(0 if options.smoke else _WARM_STEPS):
                work.step()
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            torch.cuda._sleep(1)
            work.step()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
            print(
                json.dumps({"scenario": path.stem, "variant": name, "bytes": work.bytes}),
                flush=True,
            )
            del work
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
