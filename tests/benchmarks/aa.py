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

KINDS = Path(__file__).parent / "aa"
TRIALS = {"compute_bound": 200, "memory_bound": 60, "cache_resident": 60, "allocating": 60, "small_ops": 60}


def trial(kind, seed, folder):
    return gpulab.run(KINDS / f"{kind}.py", device="cpu", seed=seed, output=folder / f"{kind}-{seed}.jsonl")


def shares(reports, variant):
    comparisons = (report.comparison(variant) for report in reports)
    verdicts = Counter(comparison.verdict if comparison else "failed" for comparison in comparisons)
    return ", ".join(f"{name} {count}" for name, count in verdicts.most_common())


def main():
    trials = dict(argument.split("=") for argument in sys.argv[1:]) or TRIALS
    with tempfile.TemporaryDirectory() as name:
        for kind, count in trials.items():
            reports, started = [], time.monotonic()
            for seed in range(int(count)):
                report = trial(kind, seed, Path(name))
                reports.append(report)
                print(msgspec.json.encode([kind, seed, report.control, report.method, report.comparisons]).decode())
                sys.stdout.flush()
            took = (time.monotonic() - started) / len(reports)
            print(f"{kind}: {len(reports)} trials of {took:.1f} s, {KINDS.name}/{kind}.py")
            print(f"  A' against A: {shares(reports, 'same')}")
            print(f"  5 % slower:   {shares(reports, 'slower')}")
            control = Counter(report.control.verdict for report in reports if report.control)
            print(f"  control:      {dict(control)}", flush=True)


if __name__ == "__main__":
    main()
