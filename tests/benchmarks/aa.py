"""A/A: does the lab call a difference where there is none, and find one of 5 % that is there?

Each trial is a fresh worker at the default budget that measures A, a separately built A' (`same`) and a variant
made 5 % slower on purpose. Prints the shares of every verdict for five kinds of step.

    python tests/benchmarks/aa.py                     # 200 compute-bound trials, 60 of each other kind: over an hour
    python tests/benchmarks/aa.py compute_bound=20    # some of one kind
"""

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec

import gpulab
from gpulab.headless.runner import measure
from gpulab.model.conclude import run_result
from gpulab.run.catalog import read_file
from gpulab.run.record import RunFile
from gpulab.run.request import Settings, request_for

KINDS = Path(__file__).parent / "aa"
TRIALS = {"compute_bound": 200, "memory_bound": 60, "cache_resident": 60, "allocating": 60, "small_ops": 60}


def trial(kind, seed, folder):
    entry = read_file(KINDS / f"{kind}.py")
    file = RunFile(folder / f"{kind}-{seed}.jsonl", gpulab.__version__)
    state = measure(request_for(entry, Settings(device="cpu", seed=seed)), file)
    return run_result(state)


def shares(results, variant):
    verdicts = Counter(
        next((one.verdict for one in result.comparisons if one.variant == variant), "failed") for result in results
    )
    return ", ".join(f"{name} {count}" for name, count in verdicts.most_common())


def main():
    wanted = dict(one.split("=") for one in sys.argv[1:]) or TRIALS
    with tempfile.TemporaryDirectory() as name:
        for kind, count in wanted.items():
            results, started = [], time.monotonic()
            for seed in range(int(count)):
                result = trial(kind, seed, Path(name))
                results.append(result)
                print(msgspec.json.encode([kind, seed, result.control, result.method, result.comparisons]).decode())
                sys.stdout.flush()
            took = (time.monotonic() - started) / len(results)
            print(f"{kind}: {len(results)} trials of {took:.1f} s, {KINDS.name}/{kind}.py")
            print(f"  A' against A: {shares(results, 'same')}")
            print(f"  5 % slower:   {shares(results, 'slower')}")
            control = Counter(result.control.verdict for result in results if result.control)
            print(f"  control:      {dict(control)}", flush=True)


if __name__ == "__main__":
    main()
