"""The trend of a scenario: the paired speedups of its runs over time, by device, parameters, and
variant; where they changed, and what of the environment did.

What `--history` reports, and writes as JSON (schema gpulab.history/1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from gpulab.core.machine import Device
from gpulab.features.history.change_points import (
    MOST_RUNS,
    Runs,
    change_points,
    differ,
    level,
    runs_of,
)
from gpulab.features.history.report import PastComparison, PastRun
from gpulab.scenario import Param

SCHEMA = "gpulab.history/1"
_VERSIONS = ("driver", "torch", "cuda", "triton", "gpulab", "python")
_SOURCE_DIGITS = 7


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """One thing of the environment that was another from some run on."""

    what: str
    """driver, torch, cuda, triton, gpulab, python, power limit, or source."""
    before: str
    after: str


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """Runs at one level, from the run of `run_file` on: the mean of their speedups with its 99 %
    interval.
    """

    since: str
    """When its first run started: UTC, ISO 8601."""
    run_file: str
    runs: int
    speedup: float
    low: float | None = None
    high: float | None = None
    changed: tuple[Changed, ...] = ()
    """Of the environment at its start; empty where that is the first one, or only the level
    changed.
    """
    differs: bool | None = None
    """Whether the level is another than before: None where there are too few runs to tell, or
    nothing came before.
    """
    ratio: float | None = None
    """Its speedup over that before."""


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """One variant over what it is compared with; the newest stretch comes last."""

    variant: str
    against: str
    runs: int
    stretches: tuple[Stretch, ...]

    @property
    def newest_level(self) -> Stretch:
        """The newest stretch that is not the same as that before: another, too few runs to tell,
        or the first.
        """
        return next(each for each in reversed(self.stretches) if each.differs is not False)


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that measured the same on the same device: those of full length that came to a
    result.
    """

    device: Device
    host: str = ""
    params: dict[str, Param] = {}
    runs: int
    first: str
    last: str
    """When the first and the newest of them started."""
    best: str | None = None
    """The best variant of the newest run."""
    trends: tuple[Trend, ...] = ()


class ScenarioHistory(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one scenario, or of the functions of a file."""

    scenario: str
    path: str
    runs: int
    newest: PastRun
    last_result: PastRun
    """The newest that is no smoke run and was not interrupted; the newest where there is none."""
    groups: tuple[Group, ...] = ()
    """The one with the newest run first."""
    entries: tuple[PastRun, ...] = ()
    """Its runs, the newest first, where it was asked for by its name."""


class HistoryReport(msgspec.Struct, frozen=True, kw_only=True):
    """What --history says: `unfinished` are run files of the folder without an end that can be
    read.
    """

    schema: str = SCHEMA
    folder: str
    runs: int
    unfinished: int = 0
    scenarios: tuple[ScenarioHistory, ...] = ()


def histories(runs: Sequence[PastRun], *, with_entries: bool = False) -> list[ScenarioHistory]:
    """Of all scenarios of these runs, that of the newest run first."""
    by_scenario: dict[tuple[str, str], list[PastRun]] = {}
    for run in sorted(runs, key=lambda run: run.at):
        by_scenario.setdefault((run.path, run.scenario), []).append(run)
    every = [_history(own, with_entries=with_entries) for own in by_scenario.values()]
    return sorted(every, key=lambda history: history.newest.at, reverse=True)


def _history(runs: Sequence[PastRun], *, with_entries: bool) -> ScenarioHistory:
    newest = runs[-1]
    results = [run for run in runs if not (run.smoke or run.stopped)]
    return ScenarioHistory(
        scenario=newest.scenario,
        path=newest.path,
        runs=len(runs),
        newest=newest,
        last_result=results[-1] if results else newest,
        groups=tuple(groups(runs)),
        entries=tuple(reversed(runs)) if with_entries else (),
    )


def groups(runs: Sequence[PastRun]) -> list[Group]:
    """Of one scenario's runs, which come the oldest first; the group with the newest run first."""
    alike: dict[tuple[object, ...], list[PastRun]] = {}
    for run in runs:
        if run.counts:
            alike.setdefault(group_key(run), []).append(run)
    made = [_group(own[-MOST_RUNS:], len(own)) for own in alike.values()]
    return sorted(made, key=lambda group: group.last, reverse=True)


def group_of(runs: Sequence[PastRun], like: PastRun) -> Group | None:
    """The group of a run among the runs of its scenario, which come the oldest first."""
    key = group_key(like)
    own = [run for run in runs if run.counts and group_key(run) == key]
    return _group(own[-MOST_RUNS:], len(own)) if own else None


def group_key(run: PastRun) -> tuple[object, ...]:
    """Equal for runs whose speedups are one history, whatever the versions were."""
    device = run.device
    named = device.uuid or device.name
    params = tuple(sorted(run.params.items()))
    return run.host, device.kind, named, device.threads, params


def _group(runs: Sequence[PastRun], count: int) -> Group:
    newest = runs[-1]
    pairs: dict[tuple[str, str], None] = {}
    for entry in newest.comparisons:
        if _interval(entry):
            pairs[entry.variant, entry.against] = None
    return Group(
        device=newest.device,
        host=newest.host,
        params=newest.params,
        runs=count,
        first=runs[0].at,
        last=newest.at,
        best=newest.best,
        trends=tuple(_trend(runs, pair, len(pairs)) for pair in pairs),
    )


def _trend(runs: Sequence[PastRun], pair: tuple[str, str], pairs: int) -> Trend:
    """Of one variant: first cut where the environment changed, then where the level did."""
    with_pair = []
    intervals = []
    for run in runs:
        for entry in run.comparisons:
            interval = _interval(entry)
            if (entry.variant, entry.against) == pair and interval:
                with_pair.append(run)
                intervals.append(interval)
    values = runs_of(intervals)
    stretches: list[Stretch] = []
    before = values.part(0, 0)
    for start, end in _alike(with_pair):
        own = values.part(start, end)
        changed: tuple[Changed, ...] = ()
        if start:
            changed = tuple(_changes(with_pair[start - 1], with_pair[start]))
        cuts = [0, *_change_points(before, own, pairs), len(own)]
        for cut, until in pairwise(cuts):
            part = own.part(cut, until)
            stretches.append(_stretch(with_pair[start + cut], part, before, changed))
            before = part
            changed = ()
    return Trend(variant=pair[0], against=pair[1], runs=len(with_pair), stretches=tuple(stretches))


def _change_points(before: Runs, own: Runs, pairs: int) -> list[int]:
    """Of the runs in one environment. Those before it are more of the same where the two do not
    differ.
    """
    if differ(before, own) is not False:
        return change_points(own, pairs)
    known = len(before)
    return [place - known for place in change_points(before.joined(own), pairs) if place > known]


def _stretch(first: PastRun, runs: Runs, before: Runs, changed: tuple[Changed, ...]) -> Stretch:
    mean = level(runs)
    differs = None
    ratio = None
    if len(before):
        differs = differ(before, runs) if changed else True
        ratio = mean.speedup / level(before).speedup
    return Stretch(
        since=first.at,
        run_file=first.run_file,
        runs=mean.runs,
        speedup=mean.speedup,
        low=mean.low,
        high=mean.high,
        changed=changed,
        differs=differs,
        ratio=ratio,
    )


def _alike(runs: Sequence[PastRun]) -> Iterator[tuple[int, int]]:
    """(start, end) of the runs that follow each other in one environment."""
    start = 0
    for place in range(1, len(runs)):
        before = runs[place - 1]
        after = runs[place]
        if _is_as_before(before, after):
            continue
        if any(_changes(before, after)):
            yield start, place
            start = place
    if runs:
        yield start, len(runs)


def _is_as_before(before: PastRun, after: PastRun) -> bool:
    """Of thousands of runs most are."""
    return (
        before.source_sha256 == after.source_sha256
        and before.environment == after.environment
        and before.power_limit_w == after.power_limit_w
    )


def _changes(before: PastRun, after: PastRun) -> Iterator[Changed]:
    """What of the environment is another; nothing is said of what is unknown in one of them."""
    for name in _VERSIONS:
        old = before.environment.get(name)
        new = after.environment.get(name)
        if old and new and old != new:
            yield Changed(what=name, before=old, after=new)
    old_limit = before.power_limit_w
    new_limit = after.power_limit_w
    if old_limit and new_limit and old_limit != new_limit:
        yield Changed(what="power limit", before=f"{old_limit:.0f} W", after=f"{new_limit:.0f} W")
    if before.source_sha256 != after.source_sha256:
        yield Changed(
            what="source",
            before=before.source_sha256[:_SOURCE_DIGITS],
            after=after.source_sha256[:_SOURCE_DIGITS],
        )


def _interval(entry: PastComparison) -> tuple[float, float, float] | None:
    if entry.speedup is None or entry.low is None or entry.high is None:
        return None
    if not 0 < entry.low <= entry.speedup <= entry.high:
        return None
    return entry.speedup, entry.low, entry.high
