"""Where the variance of a speedup comes from: blocks, builds, processes, interpreters, and time.

    python benchmarks/variance.py FOLDER --minutes 60 [--device cpu] [--core 0] [--kinds a,b]
    # the table of the runs that FOLDER holds, at any time
    python benchmarks/variance.py FOLDER --report

A designed experiment: again and again, over all of the minutes, each kind of pair is visited, and
measured twice, one run straight after the other, each in a fresh interpreter. A run forks processes
from its parent, a process makes builds of every variant, a build is timed in rounds. So of
log(t_variant / t_baseline)

    visits (time) > runs (fresh interpreters) > processes (forked) > epochs (builds) > rounds (blocks)

are nested random effects, and each level's variance is what its means differ by beyond what the
levels below explain. Epochs and processes that lie far out are drawn in, since the lab's medians do
not see them either. Run files stay in FOLDER, and another call goes on with the visits that are
missing.

The twin has the code of the baseline: what changes with the machine's state changes both, so that
its builds and processes are those of placement alone. What `unlike` has more than the twin is a
drift of the ratio itself.
"""

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from math import pi, sqrt
from pathlib import Path
from statistics import fmean, median
from time import monotonic

from pair_runs import (
    BASELINE,
    KINDS,
    NEVER_NARROW,
    QUIET,
    UNLIKE,
    events_of,
    pin,
    processes_of,
    run_pair,
)

RUNS = 2
"""Of a visit."""
LEAST_ROUNDS = 2
"""Of an epoch: the last one of a process is cut off when its time is over."""
LEVELS = ("builds", "processes", "interpreters", "time")
COLUMNS = (
    "pair",
    "variant",
    "blocks",
    *LEVELS,
    "lag-1 processes",
    "lag-1 visits",
    "visits",
    "processes each",
)


@dataclass(frozen=True)
class Split:
    """Standard deviations of log-ratios by level, None where there is too little to tell;
    correlations; counts.
    """

    blocks: float
    levels: dict[str, float | None]
    lag_1_processes: float | None
    lag_1_visits: float | None
    visits: int
    processes: float
    """Of a visit, on average."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--time", type=float, default=10.0, help="seconds of rounds of each run")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--core", type=int, help="keep everything on one core")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS)
    parser.add_argument("--report", action="store_true", help="measure nothing")
    options = parser.parse_args()
    if not options.report:
        pin(options.core)
        options.folder.mkdir(parents=True, exist_ok=True)
        measure(options)
    for line in table(options.folder, options.kinds):
        print(line, flush=True)


def measure(options):
    """Visit every kind in turn until the minutes are over."""
    ends = monotonic() + 60 * options.minutes
    visit = 1 + max((visit for _, visit, _ in run_files(options.folder)), default=0)
    while monotonic() < ends:
        for kind in options.kinds:
            for run in range(RUNS):
                path = options.folder / f"{kind}.{visit:04}.{run}.jsonl"
                flags = ("--time", str(options.time), "--width", NEVER_NARROW, *QUIET)
                code, began = run_pair(kind, options.device, path, *flags)
                print(
                    f"visit {visit}, {kind}, run {run}: exit {code}, {monotonic() - began:.1f} s",
                    file=sys.stderr,
                )
            if monotonic() >= ends:
                return
        visit += 1


def run_files(folder):
    """{(kind, visit, run): path} of a folder."""
    names = {path: path.name.split(".") for path in sorted(folder.glob("*.*.*.jsonl"))}
    return {(kind, int(visit), int(run)): path for path, (kind, visit, run, _) in names.items()}


def table(folder, kinds):
    """Markdown, for the guide: standard deviations of the log-ratio in per cent."""
    yield "| " + " | ".join(COLUMNS) + " |"
    yield "|---|---|" + "---:|" * (len(COLUMNS) - 2)
    for kind in kinds:
        visits = defaultdict(list)
        for (name, visit, _), path in sorted(run_files(folder).items()):
            if name == kind and (processes := processes_of(events_of(path))):
                visits[visit].append(processes)
        for variant in (UNLIKE, "twin"):
            split = split_of(list(visits.values()), (variant, BASELINE))
            if split is not None:
                yield "| " + " | ".join(cells(kind, variant, split)) + " |"


def split_of(visits, key):
    """The split of one ratio, from visits of runs of processes of epochs. None where nothing was
    measured.
    """
    rounds = _without_empty(
        [
            [
                [
                    [
                        values
                        for epoch in process
                        if len(values := epoch.values(key)) >= LEAST_ROUNDS
                    ]
                    for process in run
                ]
                for run in visit
            ]
            for visit in visits
        ],
        len(LEVELS),
    )
    if not rounds:
        return None
    runs = [run for visit in rounds for run in visit]
    sd = block_sd([values for run in runs for process in run for values in process])
    leaves = iter([leaf for run in runs for leaf in _leaves(run, sd**2)])
    epochs = [
        [[[next(leaves) for _ in process] for process in run] for run in visit] for visit in rounds
    ]
    variances = components(epochs, lambda leaf: leaf, len(LEVELS))
    levels = {
        name: None if variance is None else sqrt(max(0.0, variance))
        for name, variance in zip(LEVELS, variances, strict=True)
    }
    by_visit = [
        [[fmean(value for value, _ in process) for process in run] for run in visit]
        for visit in epochs
    ]
    means = [fmean(mean for run in visit for mean in run) for visit in by_visit]
    processes = sum(map(len, runs)) / len(rounds)
    return Split(
        sd,
        levels,
        lag_1([run for visit in by_visit for run in visit]),
        lag_1([means]),
        len(rounds),
        processes,
    )


def _leaves(run, block_variance):
    """(median, the variance that its blocks give it) of every epoch of a run, with outliers drawn
    in.
    """
    medians = drawn_in([[median(values) for values in process] for process in run])
    means = [fmean(process) for process in medians]
    (drawn,) = drawn_in([means])
    for process, values, shift in zip(
        run, medians, (new - old for new, old in zip(drawn, means, strict=True)), strict=True
    ):
        for epoch, value in zip(process, values, strict=True):
            yield value + shift, median_noise(block_variance, len(epoch))


def _without_empty(tree, depth):
    """The tree without its empty branches."""
    if not depth:
        return tree
    return [branch for inner in tree if (branch := _without_empty(inner, depth - 1))]


def cells(kind, variant, split):
    deviations = [split.blocks, *split.levels.values()]
    correlations = (split.lag_1_processes, split.lag_1_visits)
    return (
        kind.replace("_", " "),
        variant,
        *("n/a" if sd is None else f"{sd:.2%}".replace("%", " %") for sd in deviations),
        *("n/a" if r is None else f"{r:.2f}" for r in correlations),
        str(split.visits),
        f"{split.processes:.0f}",
    )


_NORMAL_DEVIATION = 0.6745
"""Median of |x - mean| of a normal value, in standard deviations."""
_NORMAL = _NORMAL_DEVIATION * sqrt(2)
"""Of |x - y| of two."""
_MOST_DEVIATIONS = 4.0


@dataclass(frozen=True)
class Mean:
    """The mean of a group, and the part of its variance that comes from what is below it."""

    value: float
    noise: float


def components(tree, leaf_noise, depth):
    """The variance that each level adds, from the leaves' own grouping up to the top: `depth` of
    them.

    From the leaves up, what the means of one level differ by is compared with what the levels below
    explain of it (Searle, Casella and McCulloch, Variance Components, 4.2): unbiased where groups
    are alike in size.

    `tree` is lists within lists, `depth` deep, of leaf values; `leaf_noise(leaf)` gives (value,
    noise variance). None stands for a level at which no group has two members.
    """
    variances = []
    groups = _groups(tree, depth)
    means = [[Mean(*leaf_noise(leaf)) for leaf in group] for group in groups]
    for level in range(depth):
        variance = _between(means)
        variances.append(variance)
        upper = [_merged(group, variance or 0.0) for group in means]
        if level + 1 < depth:
            means = _regrouped(upper, _groups(tree, depth - level - 1))
    return variances


def _groups(tree, depth):
    """The lists at the bottom of the first `depth` levels, in order."""
    lists = [tree]
    for _ in range(depth - 1):
        lists = [inner for outer in lists for inner in outer]
    return [group for group in lists if group]


def _regrouped(means, groups):
    rest = iter(means)
    return [[next(rest) for inner in group if inner] for group in groups]


def _between(means):
    """The variance of a level's members around their groups, less their noise."""
    wide = [group for group in means if len(group) > 1]
    if not wide:
        return None
    squares = noise = freedom = 0.0
    for group in wide:
        centre = fmean(mean.value for mean in group)
        squares += sum((mean.value - centre) ** 2 for mean in group)
        noise += (len(group) - 1) * fmean(mean.noise for mean in group)
        freedom += len(group) - 1
    return (squares - noise) / freedom


def _merged(group, variance):
    noise = variance + fmean(mean.noise for mean in group)
    return Mean(fmean(mean.value for mean in group), noise / len(group))


def block_sd(groups):
    """The standard deviation of single values, from differences of neighbours in each group: no
    drift, no outliers.
    """
    differences = [abs(second - first) for group in groups for first, second in pairwise(group)]
    return median(differences) / _NORMAL if differences else 0.0


def drawn_in(groups):
    """The values with outliers drawn in: no further from their group's median than so many standard
    deviations.

    A lab that takes medians does not see them, and a mean of squares would see nothing else. The
    standard deviation is that of all groups together, by the median of absolute deviations.
    """
    centres = [median(group) for group in groups]
    deviations = [
        abs(value - centre)
        for group, centre in zip(groups, centres, strict=True)
        if len(group) > 1
        for value in group
    ]
    limit = _MOST_DEVIATIONS * median(deviations) / _NORMAL_DEVIATION if deviations else 0.0
    return [
        [min(max(value, centre - limit), centre + limit) for value in group]
        if len(group) > 1
        else list(group)
        for group, centre in zip(groups, centres, strict=True)
    ]


def median_noise(variance, count):
    """The variance of the median of `count` normal values."""
    factor = pi / 2
    return variance * factor / (count + factor - 1)


def lag_1(sequences):
    """Correlation of each value with the next of its sequence, about the mean of all; None where
    there are too few.
    """
    values = [value for sequence in sequences for value in sequence]
    neighbours = [pair for sequence in sequences for pair in pairwise(sequence)]
    if len(neighbours) < 2:
        return None
    centre = fmean(values)
    variance = fmean((value - centre) ** 2 for value in values)
    return (
        fmean((a - centre) * (b - centre) for a, b in neighbours) / variance if variance else None
    )


if __name__ == "__main__":
    main()
