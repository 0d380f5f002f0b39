"""Does --compare find what changed, and nothing else?

    python benchmarks/comparing.py FOLDER [--runs 30] [--changed 10] [--time 3] [--device cpu]
    # only what is drawn from the spread of recorded runs: seconds
    python benchmarks/comparing.py

With FOLDER real runs of a compute-bound pair are made, or taken where the folder has them: `before`,
and between them `after`, in which one variant does 10 % more work. Every pair of runs of the same
code is compared, every run before with every run after, and sides of 4 and of 8 runs drawn at
random. Then the same with runs that are drawn: each recording gives the spread of its processes,
and every drawn run lies off by the spread between runs that the lab assumes, or by half or one and a
half of it.
"""

import argparse
import subprocess
import sys
from collections import Counter
from itertools import combinations, product
from math import log
from pathlib import Path
from random import Random
from statistics import median, variance

from commands import GPULAB

from gpulab.core.run_file import RunFileError
from gpulab.features.compare.analysis import compare_runs, saved_run
from gpulab.features.compare.report import Pairing
from gpulab.session.run import FileSource, Run
from gpulab.session.saved import recordings
from gpulab.stats.separate_runs import MEMORY_SPREAD, SPEEDUP_SPREAD, difference
from gpulab.stats.verdicts import verdict_of

SCENARIO = Path(__file__).parent / "pairs" / "compute_bound.py"
CHANGED, FACTOR = "slower", 1.1
QUIET = ("--profile", "off", "--telemetry", "off")
MOST_FALSE, LEAST_FOUND = 0.01, 0.95
GROUPS, DRAWN_GROUPS = (4, 8), 100


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--changed", type=int, default=10)
    parser.add_argument("--time", default="3")
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--draws", type=int, default=100, help="pairs drawn of each recorded variant"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random = Random(options.seed)
    holds = True
    print(f"{'pairs':42} {'pairs':>6} {'changed':>8} {'of rows':>8}   demanded")
    if options.folder:
        measure(options)
        holds = real(options.folder, random)
    return not (drawn(options.draws, random) and holds)


def measure(options):
    """Make the runs that are missing, those after a change spread between those before."""
    before = SCENARIO.read_text()
    after = before.replace("inner * 21 // 20", f"inner * {round(210 * FACTOR)} // 200")
    assert after != before
    for side, text in (("before", before), ("after", after)):
        (options.folder / side).mkdir(parents=True, exist_ok=True)
        (options.folder / side / "pairs.py").write_text(text)
    for turn in range(options.runs):
        run(options, "before", turn)
        if (turn + 1) * options.changed // options.runs > turn * options.changed // options.runs:
            run(options, "after", turn)


def run(options, side, turn):
    folder = options.folder / side
    path = folder / f"{turn:03}.jsonl"
    if path.exists():
        return
    command = [*GPULAB, "--run", str(folder / "pairs.py"), "--device", options.device, *QUIET]
    command += ["--time", options.time, "--output", str(path)]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def saved(path):
    run = Run(FileSource(path))
    run.poll()
    return saved_run(run.report, run.state)


def real(folder, random):
    """Of the runs in the folder."""
    sides = {
        side: [saved(path) for path in sorted((folder / side).glob("*.jsonl"))]
        for side in ("before", "after")
    }
    before, after = sides["before"], sides["after"]
    alike = [([a], [b]) for group in sides.values() for a, b in combinations(group, 2)]
    holds = said("same code, a run each side", alike, most=MOST_FALSE)
    changed = [([a], [b]) for a, b in product(before, after)]
    holds &= said("10 % slower, a run each side", changed, least=LEAST_FOUND)
    for size in GROUPS:
        if len(before) >= 2 * size:
            groups = [split(before, size, random) for _ in range(DRAWN_GROUPS)]
            holds &= said(f"same code, {size} runs each side", groups, most=MOST_FALSE)
        if min(len(before), len(after)) >= size:
            groups = [
                (random.sample(before, size), random.sample(after, size))
                for _ in range(DRAWN_GROUPS)
            ]
            holds &= said(f"10 % slower, {size} runs each side", groups, least=LEAST_FOUND)
    return holds


def split(runs, size, random):
    chosen = random.sample(runs, 2 * size)
    return chosen[:size], chosen[size:]


def said(title, pairs, most=None, least=None):
    """Print how many rows changed: of code that is the same all rows, else that of the variant."""
    verdicts = Counter()
    unpaired = Counter()
    for a, b in pairs:
        for row in compare_runs("before", "after", a, b).rows:
            if row.pairing == Pairing.UNPAIRED:
                unpaired[row.changed] += 1
            elif least is None or row.variant == CHANGED:
                verdicts[row.changed] += 1
    holds = tell(f"{title}, speedups", len(pairs), verdicts, most, least)
    if most is not None:
        holds &= tell(f"{title}, times", len(pairs), unpaired, most, None)
    return holds


def tell(title, pairs, changed, most, least):
    total = sum(changed.values())
    share = changed[True] / total if total else 0.0
    demanded = f"<= {most:.0%}" if most is not None else f">= {least:.0%}"
    holds = share <= most if most is not None else share >= least
    mark = "" if holds else "  MISSED"
    print(f"{title:42} {pairs:>6} {changed[True]:>8} {share:>8.1%}   {demanded}{mark}")
    return holds


def drawn(draws, random):
    """Runs that are drawn from the spread of the processes of each recording."""
    speedups, times = [], []
    for path in recordings():
        try:
            run = saved(path)
        except RunFileError:
            continue
        for key, values in run.values.items():
            if len(values) >= 8 and key[0] != "control":
                logs = values if len(key) == 2 else [log(value) for value in values]
                (speedups if len(key) == 2 else times).append(list(logs))
    holds = True
    for title, spreads, floor, ratios in (
        ("speedups", speedups, SPEEDUP_SPREAD, True),
        ("times", times, MEMORY_SPREAD, False),
    ):
        for share in (0.5, 1.0, 1.5):
            changed = Counter()
            for values in spreads:
                for _ in range(draws):
                    pair = [draw(values, floor, share, random, ratios) for _ in range(2)]
                    theta = difference(pair[:1], pair[1:], floor, ratios=ratios)
                    changed[verdict_of(theta) in ("faster", "slower")] += 1
            # where runs differ by half more than is assumed, the lab promises nothing
            most = MOST_FALSE if share <= 1.0 else 0.1
            name = f"drawn, same code, {share:g} x spread, {title}"
            holds &= tell(name, sum(changed.values()), changed, most, None)
    quiet = [values for values in speedups if variance(values) ** 0.5 < SPEEDUP_SPREAD]
    changed = Counter()
    for values in quiet:
        for _ in range(draws):
            pair = [draw(values, SPEEDUP_SPREAD, 0.5, random, True) for _ in range(2)]
            pair[1] = [value + log(FACTOR) for value in pair[1]]
            theta = difference(pair[:1], pair[1:], SPEEDUP_SPREAD)
            changed[verdict_of(theta) == "slower"] += 1
    name = "drawn, 10 % slower, 0.5 x, quiet speedups"
    return tell(name, sum(changed.values()), changed, None, LEAST_FOUND) and holds


def draw(values, floor, share, random, ratios):
    """The processes of one more run: as far apart as those that were recorded, and all of them off
    by what runs differ.
    """
    spread = variance(values) ** 0.5
    off = random.gauss(0.0, share * (floor if ratios else max(floor, spread)))
    middle = median(values)
    return [middle + off + random.gauss(0.0, spread) for _ in values]


if __name__ == "__main__":
    sys.exit(main())
