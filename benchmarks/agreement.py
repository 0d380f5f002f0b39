"""How well runs of one pair agree: pure functions of the lines that `reproduce.py` keeps, and their
tables.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from math import log
from random import Random
from statistics import median, stdev

from pair_runs import EXPENSIVE, LIKE, UNLIKE

from gpulab.stats.statistics import FEWEST, correlated_interval, median_interval

MOST_FALSE, LEAST_SLOWER, LEAST_HELD, LEAST_SUSTAINED = 0.01, 0.95, 0.97, 0.9
GROUP = FEWEST
"""Runs behind an interval over runs, as `--repeat 8` has them."""
_TRIALS = 2000


@dataclass(frozen=True)
class Share:
    """So many of so many."""

    count: int = 0
    trials: int = 0

    def __add__(self, other):
        return Share(self.count + other.count, self.trials + other.trials)

    def __str__(self):
        return f"{self.count}/{self.trials} {self.value:.1%}" if self.trials else "none"

    @property
    def value(self):
        return self.count / self.trials if self.trials else 0.0


def share(values):
    values = list(values)
    return Share(sum(values), len(values))


def false_verdicts(records):
    """Of all comparisons of a variant with what does the same, those that came out faster or
    slower.
    """
    entries = (
        entry for record in records for name, entry in record["comparisons"].items() if name in LIKE
    )
    return share(entry["verdict"] in ("faster", "slower") for entry in entries)


def slowdowns(records):
    """Of all runs with a variant made 5 % slower, those that say so."""
    entries = (
        record["comparisons"]["slower"] for record in records if "slower" in record["comparisons"]
    )
    return share(entry["verdict"] == "slower" for entry in entries)


def alternating(records):
    """Of the intervals of two runs whose processes alternate in time, those that hold the other's
    estimate.

    `held, without`: the share, and how many comparisons have no interval to ask.
    """
    held, without = Share(), 0
    for first, second in (record["halves"] for record in records if record["halves"]):
        for name in first.keys() & second.keys():
            if first[name]["low"] is None or second[name]["low"] is None:
                without += 1
                continue
            pairs = ((first[name], second[name]), (second[name], first[name]))
            held += share(holds(own, other["speedup"]) for own, other in pairs)
    return held, without


def single_runs(records, variant):
    """Of the intervals of single runs, those that hold the median of all runs."""
    entries = [entry for entry in estimates(records, variant) if entry["low"] is not None]
    if not entries:
        return Share()
    middle = median(entry["speedup"] for entry in entries)
    return share(holds(entry, middle) for entry in entries)


def sustained(records, variant):
    """Of the sustained intervals of single runs, those that hold the median sustained speedup of
    all.
    """
    entries = [entry.get("sustained") for entry in estimates(records, variant)]
    entries = [entry for entry in entries if entry and entry["low"] is not None]
    if not entries:
        return Share()
    middle = median(entry["speedup"] for entry in entries)
    return share(holds(entry, middle) for entry in entries)


def over_runs(records, variant):
    """Of the intervals over eight runs, those that hold the median of all runs.

    `(consecutive, interleaved)`: of every eight that follow each other, and of eight that are
    spread over all the time.
    """
    speedups = [log(entry["speedup"]) for entry in estimates(records, variant) if entry["speedup"]]
    if len(speedups) < 2 * GROUP:
        return Share(), Share()
    middle, stride = median(speedups), len(speedups) // GROUP
    consecutive = [speedups[first : first + GROUP] for first in range(len(speedups) - GROUP + 1)]
    interleaved = [speedups[first::stride][:GROUP] for first in range(stride)]
    return tuple(
        share(_interval_holds(group, middle) for group in groups)
        for groups in (consecutive, interleaved)
    )


def _interval_holds(values, middle):
    interval = median_interval(values)
    return interval is not None and interval.low <= middle <= interval.high


def estimates(records, variant):
    """The comparisons of a variant, by the time of their runs."""
    ordered = sorted(records, key=lambda record: record["at"])
    return [
        record["comparisons"][variant] for record in ordered if variant in record["comparisons"]
    ]


def holds(entry, speedup):
    return entry["low"] <= speedup <= entry["high"]


def expected_alternating(count):
    """The share of alternating runs that hold each other's estimate where their `count` processes
    are independent.
    """
    random, held = Random(count), Share()
    for _ in range(_TRIALS):
        first, second = ([random.gauss(0, 1) for _ in range(count)] for _ in range(2))
        interval = correlated_interval(first)
        held += share([interval is not None and interval.low <= median(second) <= interval.high])
    return held.value


def summary(records):
    """(the tables as text, whether everything that is asked for holds)."""
    by_mode = defaultdict(list)
    for record in records:
        by_mode[record["mode"]].append(record)
    default, long = by_mode["default"], by_mode["long"]
    kinds = list(dict.fromkeys(record["kind"] for record in records))
    lines = [
        *_spread_table(kinds, default, long),
        "",
        *_verdict_table(kinds, default),
    ]
    held = True
    for title, chosen in (
        ("the five kinds", set(kinds) - set(EXPENSIVE)),
        ("expensive builds", set(EXPENSIVE)),
    ):
        rows = list(
            _demands(
                [r for r in default if r["kind"] in chosen],
                [r for r in long if r["kind"] in chosen],
            )
        )
        lines += ["", f"**{title}**", ""]
        for demand, measured, holds_ in rows:
            lines.append(
                f"- {demand}: {measured}: {'n/a' if holds_ is None else 'yes' if holds_ else 'NO'}"
            )
            held = held and holds_ is not False
    return "\n".join(lines), held


def _demands(default, long):
    """(what is asked for, what was measured, whether it holds; None where nothing was measured)."""
    false = false_verdicts(default)
    yield (
        f"false verdicts <= {MOST_FALSE:.0%}",
        false,
        false.value <= MOST_FALSE if false.trials else None,
    )
    found = slowdowns(default)
    yield (
        f"5 % slower found >= {LEAST_SLOWER:.0%}",
        found,
        found.value >= LEAST_SLOWER if found.trials else None,
    )
    held, without = alternating(long)
    counts = [
        len(values) // 2
        for record in long
        for values in record["processes"].values()
        if len(values) > 1
    ]
    count = round(median(counts)) if counts else 0
    expected = (
        f"; {count} independent processes: {expected_alternating(count):.1%}"
        if count >= FEWEST
        else ""
    )
    beside = f"; {without} without an interval{expected}" if long else ""
    demand = f"alternating runs hold each other's estimate >= {LEAST_HELD:.0%}"
    yield demand, f"{held}{beside}", held.value >= LEAST_HELD if held.trials else None
    consecutive, interleaved = _over_all_kinds(default, lambda records: over_runs(records, UNLIKE))
    demand = f"intervals over {GROUP} runs hold the median of all >= {LEAST_HELD:.0%}"
    measured = f"{consecutive} consecutive, {interleaved} interleaved"
    yield demand, measured, consecutive.value >= LEAST_HELD if consecutive.trials else None
    (single,) = _over_all_kinds(default, lambda records: (single_runs(records, UNLIKE),))
    yield "single runs hold the median of all", f"{single} (as it is)", None
    (alone,) = _over_all_kinds(default, lambda records: (sustained(records, UNLIKE),))
    demand = f"sustained intervals hold the median of all >= {LEAST_SUSTAINED:.0%}"
    yield demand, alone, alone.value >= LEAST_SUSTAINED if alone.trials else None


def _over_all_kinds(records, function):
    """Sums of the shares of each kind, whose medians are its own."""
    totals = []
    for kind in dict.fromkeys(record["kind"] for record in records):
        shares = function([record for record in records if record["kind"] == kind])
        totals = (
            [total + part for total, part in zip(totals, shares, strict=True)]
            if totals
            else list(shares)
        )
    return totals or [Share()] * len(function([]))


def _spread_table(kinds, default, long):
    titles = (
        "pair",
        "runs",
        "unlike: median",
        "sd of runs",
        "lowest to highest",
        "single runs hold it",
    )
    yield "| " + " | ".join((*titles, f"over {GROUP} runs", "alternating")) + " |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for kind in kinds:
        runs = [record for record in default if record["kind"] == kind]
        speedups = [entry["speedup"] for entry in estimates(runs, UNLIKE) if entry["speedup"]]
        if len(speedups) < 2:
            continue
        held, _ = alternating([record for record in long if record["kind"] == kind])
        consecutive, interleaved = over_runs(runs, UNLIKE)
        spread = f"{100 * stdev(map(log, speedups)):.2f} %"
        ends = f"{min(speedups):.3f}x to {max(speedups):.3f}x"
        yield (
            f"| {kind.replace('_', ' ')} | {len(runs)} | {median(speedups):.3f}x | {spread} | "
            f"{ends} | {single_runs(runs, UNLIKE)} | {consecutive + interleaved} | {held} |"
        )


def _verdict_table(kinds, default):
    """How every comparison came out."""
    yield "| pair | variant | verdicts | half-width |"
    yield "|---|---|---|---:|"
    for kind in kinds:
        runs = [record for record in default if record["kind"] == kind]
        for name in dict.fromkeys(name for record in runs for name in record["comparisons"]):
            entries = estimates(runs, name)
            verdicts = Counter(entry["verdict"] for entry in entries)
            widths = [log(entry["high"] / entry["low"]) / 2 for entry in entries if entry["low"]]
            width = f"{100 * median(widths):.2f} %" if widths else "n/a"
            text = ", ".join(f"{verdict} {count}" for verdict, count in verdicts.most_common())
            yield f"| {kind.replace('_', ' ')} | {name} | {text} | {width} |"
        if failed := sum(record["exit_code"] not in (0, 6) for record in runs):
            yield (
                f"| {kind.replace('_', ' ')} | | {failed} of {len(runs)} runs ended with another "
                "exit code than 0 | |"
            )
