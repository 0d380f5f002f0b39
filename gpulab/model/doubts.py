"""What the reader of a result must know before believing it, and the times that it is about."""

from __future__ import annotations

from statistics import median

from gpulab.model.request import RunRequest
from gpulab.model.result import Time
from gpulab.model.state import RunState, VariantState
from gpulab.model.telemetry import POWER_CAP

_BUSY = 0.1
SUSTAINED = 0.03


def warnings(state: RunState, request: RunRequest) -> list[str]:
    found = [*state.notices, *_disturbed(state)]
    if state.dear:
        found.append(
            f"builds take over a second, so there are {len(state.epochs)} of them: the interval is over pairs that "
            f"share a build, the floor is {state.planned.floor:.0%}"
            if state.planned
            else ""
        )
    if request.functions:
        found.append("plain functions: nothing is checked and nothing compared, so no speedup is claimed")
    baseline = next((one.checked.tolerance for one in state.variants.values() if one.checked), None)
    for name, one in state.variants.items():
        found += [f"{name}: {text}" for text in _warnings_of(one, baseline, request)]
        found += _sustained(state, name, one)
    return found


def _disturbed(state: RunState) -> list[str]:
    """What telemetry saw of a device that was not as it should be."""
    found = list(state.sampler.problems) if state.sampler else []
    found += dict.fromkeys(problem for one in state.telemetry for problem in one.problems)
    found += [f"telemetry of the GPU ended early, and nobody watched it since: {state.lost}"] if state.lost else []
    if state.sampler and state.sampler.gpu:
        for field, what in (("reasons", "whether the clocks were held back"), ("processes", "whether others used it")):
            if why := state.unsupported.get(field):
                found.append(f"{what} could not be checked: {why}")
    blocks = sum(len(one) for epoch in state.epochs for one in epoch.rounds)
    for why in dict.fromkeys(window.why for window in state.windows):
        windows = [window for window in state.windows if window.why == why]
        kept = sum(len(one) for epoch in state.epochs for one in epoch.outside(windows).rounds)
        found.append(f"{why}: {blocks - kept} of {blocks} blocks dropped")
    spans = [span for epoch in state.epochs for one in epoch.spans for span in one.values()]
    first, last = min((span[0] for span in spans), default=0.0), max((span[1] for span in spans), default=0.0)
    measuring = [one for one in state.telemetry if one.reasons is not None and first <= one.t <= last]
    capped = sum(bool((one.reasons or 0) & POWER_CAP) for one in measuring)
    if capped:
        found.append(f"power cap in {capped} of {len(measuring)} readings of the rounds: times hold for this limit")
    return found


def _sustained(state: RunState, name: str, one: VariantState) -> list[str]:
    """Whether a variant alone runs as it did among the others: they share one power state and one cache."""
    in_turns = clocks_of(state, one, time_of(state, one)).get("wall")
    cold = state.request is not None and state.request.cache == "cold"
    if one.soaked is None or not in_turns or cold:  # flushing is most of a cold soak
        return []
    off = one.soaked.time_s / in_turns - 1
    if abs(off) <= SUSTAINED:
        return []
    longer = "longer" if off > 0 else "less"
    alone_s = one.soaked.ended - one.soaked.started
    return [f"{name}: alone for {alone_s:.0f} s a step took {abs(off):.1%} {longer} than in turns with the others"]


def _warnings_of(one: VariantState, baseline: float | None, request: RunRequest) -> list[str]:
    """What must be known of one variant; `baseline` is the relative error its baseline's dtype allows."""
    found = []
    if one.warmed and one.warmed.drifting:
        found.append(f"still drifting by {one.warmed.drift:.1%} when its warm-up ended")
    on_cpu = request.device == "cpu"  # elsewhere the host waits for the device, and may sleep
    if on_cpu and one.contention is not None and one.contention > _BUSY:
        found.append(f"off the CPU for {one.contention:.0%} of its time: a busy machine, or a step that waits")
    if one.info.unchecked and not request.functions:
        found.append(f"not checked ({one.info.unchecked})")
    allowed = one.checked.tolerance if one.checked else None
    if allowed and baseline and allowed > baseline:
        found.append(f"computes in lower precision: checked to a relative error of {allowed:.0e}, not {baseline:.0e}")
    return found


def time_of(state: RunState, one: VariantState) -> Time | None:
    """Seconds per step with their interval, as far as they are known."""
    if one.status not in ("ok", "pending"):
        return None
    items = one.built.items if one.built else 1.0
    interval = state.time_per_item(one.info.name)
    if interval is not None:
        return Time(median=interval.median * items, low=interval.low * items, high=interval.high * items)
    rough = state.rough_time(one.info.name)
    if rough is not None:
        return Time(median=rough * items)
    return Time(median=one.calibrated.step_s) if one.calibrated else None


def clocks_of(state: RunState, one: VariantState, time: Time | None) -> dict[str, float]:
    found = {} if time is None or state.request is None else {state.request.clock: time.median}
    if one.other_clock and one.other_clock.times_s:
        found[one.other_clock.clock] = median(one.other_clock.times_s)
    return found
