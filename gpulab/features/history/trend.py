"""The history of a scenario: the paired speedups of its runs over time, by device, parameters, and
variant; which of them lie outside the range of those before, and what of the environment changed.

What `--history` reports, and writes as JSON (schema gpulab.history/2).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from gpulab.catalog.view import best_comparison
from gpulab.core.machine import Device
from gpulab.report.past import PastRun
from gpulab.scenario import Param
from gpulab.stats.comparison import Earlier, earlier_of

SCHEMA = "gpulab.history/2"
_LAST_RUNS = 20
"""Those before a run, whose range it lies in or outside of."""
_AROUND = 100
"""Runs on each side of the chosen one that are looked through."""
_SOURCE_DIGITS = 7


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """One thing of the environment that was another in the run before."""

    what: str
    """driver, torch, cuda, triton, gpulab, python, power limit, or source."""
    before: str
    after: str


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """The speedup of one run, with its 99 % interval where it has one."""

    at: str
    """When the run started: UTC, ISO 8601."""
    run_file: str
    speedup: float
    low: float | None = None
    high: float | None = None
    outside: Earlier | None = None
    """The range of the last runs before it, where it lies outside."""
    changed: tuple[Changed, ...] = ()
    """Of the environment since the run before, where it lies outside."""


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """One variant over what it is compared with; the newest point comes last."""

    variant: str
    against: str
    runs: int
    points: tuple[Point, ...]

    @property
    def newest_outside(self) -> Point | None:
        return next((point for point in reversed(self.points) if point.outside), None)


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
    """The result of --history: `unfinished` are run files of the folder without an end that can be
    read.
    """

    schema: str = SCHEMA
    folder: str
    runs: int
    unfinished: int = 0
    scenarios: tuple[ScenarioHistory, ...] = ()


def histories(runs: Sequence[PastRun], *, with_entries: bool = False) -> list[ScenarioHistory]:
    """Return the histories of all scenarios of these runs, that of the newest run first."""
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
    """Group a scenario's runs, which come the oldest first; the group of the newest run first."""
    alike: dict[tuple[object, ...], list[PastRun]] = {}
    for run in runs:
        if run.counts:
            alike.setdefault(_group_key(run), []).append(run)
    return sorted(map(_group, alike.values()), key=lambda group: group.last, reverse=True)


def _group_key(run: PastRun) -> tuple[object, ...]:
    """Equal for runs whose speedups are one history, whatever the versions were."""
    device = run.device
    named = device.uuid or device.name
    params = tuple(sorted(run.params.items()))
    return run.host, device.kind, named, device.threads, params


def _group(runs: Sequence[PastRun]) -> Group:
    newest = runs[-1]
    entries = [entry for entry in newest.comparisons if entry.speedup is not None]
    pairs = dict.fromkeys((entry.variant, entry.against) for entry in entries)
    return Group(
        device=newest.device,
        host=newest.host,
        params=newest.params,
        runs=len(runs),
        first=runs[0].at,
        last=newest.at,
        best=newest.best,
        trends=tuple(_trend(runs, pair) for pair in pairs),
    )


def _trend(runs: Sequence[PastRun], pair: tuple[str, str]) -> Trend:
    points: list[Point] = []
    before: PastRun | None = None
    for run in runs:
        for entry in run.comparisons:
            if (entry.variant, entry.against) != pair or entry.speedup is None:
                continue
            point = Point(
                at=run.at,
                run_file=run.run_file,
                speedup=entry.speedup.value,
                low=entry.low,
                high=entry.high,
            )
            last = [each.speedup for each in points[-_LAST_RUNS:]]
            earlier = earlier_of(last, entry.speedup.ends)
            if before is not None and earlier is not None and earlier.outside:
                changed = tuple(_changes(before, run))
                point = replace(point, outside=earlier, changed=changed)
            points.append(point)
            before = run
    variant, against = pair
    newest = tuple(points[-200:])
    return Trend(variant=variant, against=against, runs=len(points), points=newest)


def trend_around(runs: Sequence[PastRun], chosen: PastRun) -> tuple[Trend, int] | None:
    """Return the trend of the best variant, and of how many runs it is a part: those that measured
    the same as the chosen one, which come the oldest first. None without a speedup.
    """
    key = _group_key(chosen)
    same = [run for run in runs if run.counts and _group_key(run) == key]
    place = bisect_left(same, chosen.at, key=lambda run: run.at)
    near = same[max(0, place - _AROUND) : place + _AROUND]
    for run in [chosen, *reversed(near)]:
        if near and (best := best_comparison(run)) is not None:
            return _trend(near, (best.variant, best.against)), len(same)
    return None


def _changes(before: PastRun, after: PastRun) -> Iterator[Changed]:
    """Yield what differs in the environment; nothing of what is unknown in one of them."""
    for name in ("driver", "torch", "cuda", "triton", "gpulab", "python"):
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
