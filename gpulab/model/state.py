"""The state of a run: what every face shows, made of nothing but the events so far.

`fold(state, event)` is pure: a replayed file, a live run and a test go through the same states.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from statistics import median
from typing import Any

from gpulab.model import events as e
from gpulab.model.compare import FLOOR, Comparison, Epoch, compare, over_epochs, refused
from gpulab.model.known import known_after
from gpulab.model.request import Device, RunRequest, VariantInfo
from gpulab.model.stats import Interval
from gpulab.model.telemetry import Window, invalid_windows

_NOBODYS_FAULT = ("cancelled", "timeout")
"""Ends of a run that say nothing about the variant that was on the clock."""

Row = tuple[int, int, str, float, tuple[float, float]]
"""(epoch, round, variant, seconds per item, (start, end)) of one block."""


@dataclass(frozen=True)
class VariantState:
    """One variant so far. `status`: pending, ok, failed, wrong, invalid, skipped, out of memory."""

    info: VariantInfo
    status: str = "pending"
    reason: str | None = None
    built: e.Built | None = None
    counted: e.Counted | None = None
    phases: e.Phases | None = None
    """The windows so far as one."""
    profiled: e.Profiled | None = None
    checked: e.Checked | None = None
    calibrated: e.Calibrated | None = None
    warmed: e.WarmedUp | None = None
    soaked: e.Soaked | None = None
    other_clock: e.OtherClock | None = None
    failure: e.VariantFailed | None = None
    blocks: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    faults: int = 0
    switches: int = 0
    sm_mhz: float = 0.0
    """Summed over blocks, as the others are."""

    @property
    def contention(self) -> float | None:
        """Share of the timed wall time in which the measuring thread did not run."""
        return max(0.0, 1 - self.cpu_s / self.wall_s) if self.wall_s else None


@dataclass(frozen=True)
class RunState:
    """One run so far; `outcome` is None until it has ended."""

    request: RunRequest | None = None
    device: Device | None = None
    environment: dict[str, str | None] = field(default_factory=dict)
    stage: str = "start"
    at_variant: str | None = None
    variants: dict[str, VariantState] = field(default_factory=dict)
    planned: e.Planned | None = None
    epochs: tuple[Epoch, ...] = ()
    open_rows: tuple[Row, ...] = ()
    stopped: str | None = None
    failures: tuple[e.VariantFailed, ...] = ()
    notices: tuple[str, ...] = ()
    ceilings: e.CeilingsMeasured | None = None
    reports: dict[tuple[str | None, str], float | None] = field(default_factory=dict)
    log: tuple[e.Log, ...] = ()
    sampler: e.TelemetryStarted | None = None
    telemetry: tuple[e.Telemetry, ...] = ()
    unsupported: dict[str, str] = field(default_factory=dict)
    """Fields of the GPU that will never have a value, and why."""
    lost: str | None = None
    """Why the GPU's telemetry ended before the run did."""
    outcome: str | None = None
    started_t: float = 0.0
    t: float = 0.0

    @property
    def dear(self) -> bool:
        return self.planned is not None and self.planned.dear

    @property
    def rounds(self) -> int:
        """Rounds so far, complete epochs and the one under way."""
        return sum(len(epoch.rounds) for epoch in self.epochs) + len({row[:2] for row in self.open_rows})

    @cached_property
    def windows(self) -> list[Window]:
        """When nothing that was measured can be believed."""
        return invalid_windows(self.telemetry)

    @cached_property
    def valid(self) -> list[Epoch]:
        """The epochs without what was measured then."""
        return [epoch.outside(self.windows) for epoch in self.epochs]

    def time_per_item(self, name: str) -> Interval | None:
        """Median seconds per item with its interval, as wide as a comparison's: over epochs where there are enough."""
        return over_epochs((epoch.times(name) for epoch in self.valid), dear=self.dear)

    def rough_time(self, name: str) -> float | None:
        """Median seconds per item of whatever has been measured, where there is too little for an interval."""
        found = [time for epoch in self.valid for time in epoch.times(name).values]
        found += [row[3] for row in self.open_rows if row[2] == name]
        return median(found) if found else None

    def comparisons(self) -> list[Comparison]:
        """Every comparison the run asks for, the control's first; a broken control takes back all the others."""
        if self.request is None:
            return []
        measured = {name for epoch in self.epochs for name in epoch.names}
        refusals = {name: one for name, one in self.variants.items() if one.status in ("wrong", "invalid")}
        failed = {name for name, one in self.variants.items() if one.status in ("failed", "out of memory")}
        pairs = [
            (name, against)
            for name, against in self.request.pairs(measured | set(refusals))
            # A baseline that failed late keeps the pairs that it completed; one that is wrong has none.
            if name not in failed and (against not in refusals or name in refusals)
        ]
        floor = self.planned.floor if self.planned else FLOOR
        found = []
        for name, against in pairs:
            dropped = sum(
                len(whole.ratios(name, against).values) - len(part.ratios(name, against).values)
                for whole, part in zip(self.epochs, self.valid, strict=True)
                if whole is not part
            )
            found.append(compare(self.valid, name, against, dear=self.dear, floor=floor, dropped=dropped))
        if found and found[0].verdict in ("faster", "slower"):
            why = f"the control, a second build of the baseline, came out {found[0].verdict}: measure again"
            found[1:] = [refused(one, "invalid", why) for one in found[1:]]
        return [refused(one, bad.status, bad.reason) if (bad := refusals.get(one.variant)) else one for one in found]


def fold(state: RunState, event: e.AnyEvent) -> RunState:
    """The state after one more event."""
    state = replace(state, t=event.t)
    match event:
        case e.RunStarted():
            variants = {info.name: _first(info) for info in event.request.variants}
            return replace(state, request=event.request, variants=variants, started_t=event.t)
        case e.WorkerReady():
            return replace(state, device=event.device, environment=event.environment)
        case e.StageStarted():
            return replace(state, stage=event.stage, at_variant=event.variant)
        case e.CeilingsMeasured():
            return replace(state, ceilings=known_after(state.ceilings, event))
        case e.Planned():
            return replace(state, planned=event)
        case e.Samples():
            return _samples(state, event)
        case e.Stopped():
            return replace(_close_epoch(state), stopped=event.reason)
        case e.Noticed():
            return replace(state, notices=(*state.notices, event.text))
        case e.Reported():
            return replace(state, reports={**state.reports, (event.variant, event.name): event.value})
        case e.Log():
            return replace(state, log=(*state.log, event))
        case e.Telemetry():
            unsupported = event.unsupported or state.unsupported
            return replace(state, telemetry=(*state.telemetry, event), unsupported=unsupported)
        case e.TelemetryStarted():
            return replace(state, sampler=event, unsupported=event.unsupported)
        case e.TelemetryLost():
            return replace(state, lost=event.reason)
        case e.TelemetrySwitched():
            return state
        case e.WorkerExited() | e.WorkerDone():
            return state
        case e.RunEnded():
            return ended(replace(state, outcome=event.outcome))
        case e.VariantFailed(variant=None):
            return replace(state, failures=(*state.failures, event))
        case _:
            return _of_variant(state, event)


def fold_all(events: Iterable[e.AnyEvent]) -> RunState:
    return reduce(fold, events, RunState())


def _first(info: VariantInfo) -> VariantState:
    if info.missing is not None:
        return VariantState(info, status="skipped", reason=info.missing)
    return VariantState(info)


def _of_variant(state: RunState, event: Any) -> RunState:
    variant = state.variants.get(event.variant)
    if variant is None:
        return state
    match event:
        case e.Built():
            variant = replace(variant, built=event)
        case e.Counted():
            variant = replace(variant, counted=event)
        case e.Phases():
            variant = replace(variant, phases=event.after(variant.phases))
        case e.Profiled():
            variant = replace(variant, profiled=event)
        case e.Calibrated():
            variant = replace(variant, calibrated=event)
        case e.WarmedUp():
            variant = replace(variant, warmed=event)
        case e.OtherClock():
            variant = replace(variant, other_clock=event)
        case e.Soaked():
            variant = replace(variant, soaked=event)
        case e.Checked(ok=True):
            variant = replace(variant, checked=event)
        case e.Checked():
            variant = replace(variant, checked=event, status="wrong", reason=event.reason)
        case e.VariantRefused():
            variant = replace(variant, status="invalid", reason=event.reason)
        case e.VariantSkipped():
            variant = replace(variant, status="skipped", reason=event.reason)
        case e.OutOfMemory():
            variant = replace(variant, status="out of memory", reason=f"{event.message} ({event.stage})")
        case e.VariantFailed():
            state = replace(state, failures=(*state.failures, event))
            if variant.failure is None:
                variant = replace(variant, failure=event)
            if variant.status == "pending" and event.kind not in _NOBODYS_FAULT:
                variant = replace(variant, status="failed", reason=event.message)
    return replace(state, variants={**state.variants, variant.info.name: variant})


def _samples(state: RunState, event: e.Samples) -> RunState:
    variants = dict(state.variants)
    rows = list(state.open_rows)
    items = {name: one.built.items if one.built else 1.0 for name, one in variants.items()}
    baseline = next(iter(variants), "")
    count = len(event.epoch)
    ended, steps = event.ended or [event.t] * count, event.steps or [1] * count
    sm_mhz = event.sm_mhz or [0.0] * count
    columns = zip(
        event.epoch,
        event.round,
        event.variant,
        event.times_s,
        event.cpu_s,
        event.faults,
        event.switches,
        ended,
        steps,
        sm_mhz,
        strict=True,
    )
    sums: dict[str, list[float]] = {}
    for epoch, number, index, time_s, cpu_s, faults, switches, end, timed, mhz in columns:
        name = event.names[index]
        per_item = time_s / items.get(name, items.get(baseline, 1.0))
        rows.append((epoch, number, name, per_item, (end - time_s * timed, end)))
        total = sums.setdefault(name, [0, 0.0, 0.0, 0, 0, 0.0])
        for place, value in enumerate((1, time_s, cpu_s, faults, switches, mhz)):
            total[place] += value
    for name, total in sums.items():
        if one := variants.get(name):
            variants[name] = replace(
                one,
                blocks=one.blocks + int(total[0]),
                wall_s=one.wall_s + total[1],
                cpu_s=one.cpu_s + total[2],
                faults=one.faults + int(total[3]),
                switches=one.switches + int(total[4]),
                sm_mhz=one.sm_mhz + total[5],
            )
    state = replace(state, variants=variants, open_rows=tuple(rows))
    return _complete(state, event.complete)


def _complete(state: RunState, complete: int) -> RunState:
    """Close every epoch below `complete`: from then on its medians never change."""
    epochs = list(state.epochs)
    while len(epochs) < complete:
        rounds: dict[int, dict[str, float]] = {}
        spans: dict[int, dict[str, tuple[float, float]]] = {}
        for epoch, number, name, time_s, span in state.open_rows:
            if epoch == len(epochs):
                rounds.setdefault(number, {})[name] = time_s
                spans.setdefault(number, {})[name] = span
        order = sorted(rounds)
        epochs.append(Epoch(tuple(rounds[number] for number in order), tuple(spans[number] for number in order)))
    rows = tuple(row for row in state.open_rows if row[0] >= complete)
    return replace(state, epochs=tuple(epochs), open_rows=rows)


def _close_epoch(state: RunState) -> RunState:
    return _complete(state, max((row[0] for row in state.open_rows), default=-1) + 1) if state.open_rows else state


def ended(state: RunState) -> RunState:
    """What ended early keeps the pairs it completed, and every variant gets its final status."""
    state = _close_epoch(state)
    measured = {name for epoch in state.epochs for name in epoch.names}
    variants = {
        name: one
        if one.status != "pending"
        else replace(one, status="ok")
        if name in measured
        else replace(one, status="failed", reason=one.failure.message)
        if one.failure and one.failure.kind == "timeout"
        else replace(one, status="skipped", reason="not measured: the run ended before it")
        for name, one in state.variants.items()
    }
    return replace(state, variants=variants)
