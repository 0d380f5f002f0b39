"""From the state of a run to its result, and of several results to the exit code of a command."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from gpulab.model.accounting import disagreements, point, roofs_of
from gpulab.model.ceilings import Roofs
from gpulab.model.compare import FLOOR, Comparison
from gpulab.model.doubts import clocks_of, time_of, warnings
from gpulab.model.events import VariantFailed
from gpulab.model.result import (
    CLOSE,
    FAILED,
    INCONCLUSIVE,
    INTERRUPTED,
    INVALID,
    MEASURED,
    OUTCOMES,
    PRECEDENCE,
    SLOWER,
    UNDER_WAY,
    WRONG,
    CeilingsResult,
    Control,
    Method,
    Report,
    Result,
    RunResult,
    Soak,
    Sweep,
    TelemetryResult,
    Together,
    VariantResult,
)
from gpulab.model.scenario import Param
from gpulab.model.spending import goodput_of
from gpulab.model.state import RunState, VariantState, ended
from gpulab.model.telemetry import letters, while_alone

TOGETHER = "all_together"
"""The variant that has every fix of the ones before it."""


def run_result(
    state: RunState, run_file: str = "", fail_below: float | None = None, *, live: bool = False
) -> RunResult:
    """The result of one run. `fail_below`: the speedup that every comparison must reach.

    Without its end a run counts as interrupted; `live` gives what one under way has so far.
    """
    request = state.request
    if request is None:
        return RunResult(scenario="", outcome="failed", exit_code=FAILED, reason="the run never started")
    if state.outcome is None and not live:
        state = ended(state)  # a run file without its end: the parent died
    everything = state.comparisons()
    control, comparisons = (everything[0], everything[1:]) if everything else (None, [])
    code, reason = _exit(state, control, comparisons, fail_below)
    roofs = roofs_of(state)
    variants = [_variant(state, one, roofs) for one in state.variants.values()]
    return RunResult(
        scenario=request.scenario,
        title=request.title,
        source_sha256=request.source_sha256,
        params=request.params,
        seed=request.seed,
        smoke=request.smoke,
        quick=request.quick,
        functions=request.functions,
        per=request.per,
        device=state.device,
        method=_method(state),
        control=_control(control) if control else None,
        claim=request.claim,
        same=request.same,
        together=_together(comparisons),
        run_file=run_file,
        outcome=UNDER_WAY if state.outcome is None and live else OUTCOMES[code],
        exit_code=code,
        reason=reason,
        warnings=[]
        if live
        else [*warnings(state, request), *disagreements(state)],  # shown at the end, and too dear for every tick
        variants=variants,
        comparisons=comparisons,
        telemetry=_telemetry(state),
        ceilings=_ceilings(state, roofs),
        sweet_spot=_sweet_spot(variants) if request.grows and code == MEASURED else None,
        reports=[Report(variant=who, name=name, value=value) for (who, name), value in state.reports.items()],
    )


def _together(comparisons: Sequence[Comparison]) -> Together | None:
    """Of a scenario that ends with all its fixes at once; None of any other. Each fix against what it was added to."""
    first: dict[str, Comparison] = {}
    for one in comparisons:
        first.setdefault(one.variant, one)
    total = first.pop(TOGETHER, None)
    gains = [one.speedup for one in first.values() if one.speedup]
    if total is None or total.speedup is None or len(gains) < 2:
        return None
    return Together(promised=prod(gains), speedup=total.speedup, low=total.low, high=total.high)


def swept(parameter: str, runs: Sequence[RunResult]) -> Sweep:
    """The sweep that the runs are; a variant that was measured at one value only has no best."""
    found: dict[str, list[tuple[float, Param]]] = {}
    for run in runs:
        for one in run.variants:
            if one.time_s and parameter in run.params:
                found.setdefault(one.name, []).append((one.time_s.median / (one.items or 1.0), run.params[parameter]))
    best = {name: min(times, key=lambda time: time[0])[1] for name, times in found.items() if len(times) > 1}
    return Sweep(scenario=runs[0].scenario, parameter=parameter, best=best)


def combine(runs: list[RunResult], environment: dict[str, str | None], sweeps: Sequence[Sweep] = ()) -> Result:
    """All runs of one command; the exit code is the first of `PRECEDENCE` that any of them has."""
    codes = {run.exit_code for run in runs}
    code = next((one for one in PRECEDENCE if one in codes), MEASURED)
    return Result(outcome=OUTCOMES[code], exit_code=code, environment=environment, runs=runs, sweeps=list(sweeps))


def _exit(
    state: RunState, control: Comparison | None, comparisons: list[Comparison], fail_below: float | None
) -> tuple[int, str | None]:
    statuses = {one.status for one in state.variants.values()}
    if state.outcome is None:
        return INTERRUPTED, "the run has no end: its parent was killed, or it is still under way"
    if state.outcome == "cancelled":
        after = "the measurement is whole; what comes after it was stopped"
        return INTERRUPTED, after if state.stopped else "what was measured before is in the run file"
    if state.failures or "failed" in statuses or state.outcome != "done":
        return FAILED, next((_told(failure) for failure in state.failures), None)
    first = next(iter(state.variants.values()), None)
    if first is not None and first.status == "skipped":
        return FAILED, f"the baseline was left out, so nothing was measured: {first.reason}"
    if "wrong" in statuses:
        return WRONG, None
    if control is not None and control.verdict in ("faster", "slower"):
        return INVALID, f"the control, a second build of the baseline, came out {control.verdict}: measure again"
    if control is not None and control.verdict == "invalid":
        return INVALID, control.reason
    if "invalid" in statuses or any(one.verdict == "invalid" for one in comparisons):
        return INVALID, None
    if fail_below is not None:
        return _demanded(comparisons, fail_below)
    return MEASURED, None


def _told(failure: VariantFailed) -> str:
    place = ", ".join(filter(None, (failure.variant, failure.stage, f"line {failure.line}" if failure.line else None)))
    return f"{failure.message} ({place})"


def _demanded(comparisons: list[Comparison], fail_below: float) -> tuple[int, str | None]:
    """Each comparison must be shown to reach the demand, and fails it where its whole interval lies below."""
    if not comparisons:
        return INCONCLUSIVE, "a speedup was demanded and nothing is compared"
    below = [one for one in comparisons if one.high is not None and one.high < fail_below]
    if below:
        return SLOWER, f"{below[0].variant} is below the demanded {fail_below:g}x"
    unsure = [one for one in comparisons if one.low is None or one.low < fail_below]
    if unsure:
        return INCONCLUSIVE, f"{unsure[0].variant} is not shown to reach the demanded {fail_below:g}x"
    return MEASURED, None


def _sweet_spot(variants: list[VariantResult]) -> str | None:
    """The smallest variant whose time per item comes close to the best."""
    times = {one.name: one.time_s.median / one.items for one in variants if one.time_s and one.time_s.low and one.items}
    best = min(times.values(), default=0.0)
    return next((name for name, time in times.items() if time <= best * (1 + CLOSE)), None)


def _telemetry(state: RunState) -> TelemetryResult | None:
    of = state.sampler
    if of is None:
        return None
    return TelemetryResult(
        gpu=of.gpu,
        uuid=of.uuid,
        why=of.why,
        lost=state.lost,
        readings=len(state.telemetry),
        unsupported=state.unsupported,
        limits=of.limits,
        health=of.health,
    )


def _ceilings(state: RunState, roofs: Roofs | None) -> CeilingsResult | None:
    if roofs is None or not roofs.ceilings:
        return None
    of = state.ceilings
    return CeilingsResult(at=of.at if of else None, cached=bool(of and of.cached), ceilings=list(roofs.ceilings))


def _soak(state: RunState, one: VariantState) -> Soak | None:
    of = one.soaked
    if of is None:
        return None
    alone = while_alone(state.telemetry, of)
    cold = state.request is not None and state.request.cache == "cold"
    items = one.built.items if one.built else 1.0
    return Soak(
        seconds=of.ended - of.started,
        readings=alone.samples,
        time_s=of.time_s,
        energy_j=None if alone.energy_j is None or cold else alone.energy_j / items,
        means=alone.means,
        clocks=letters(alone.reasons),
    )


def _control(of: Comparison) -> Control:
    return Control(speedup=of.speedup, low=of.low, high=of.high, verdict=of.verdict)


def _method(state: RunState) -> Method:
    floors = [one.calibrated.empty_block_s for one in state.variants.values() if one.calibrated]
    request = state.request
    return Method(
        clock=request.clock if request else "wall",
        cache=request.cache if request else "hot",
        epochs=len(state.epochs),
        rounds=sum(len(epoch.rounds) for epoch in state.epochs),
        floor=state.planned.floor if state.planned else FLOOR,
        unit="pairs" if state.dear else "epoch medians",
        empty_block_s=floors[0] if floors else None,
        stopped=state.stopped,
    )


def _variant(state: RunState, one: VariantState, roofs: Roofs | None) -> VariantResult:
    built, failure = one.built, one.failure
    one_thread = state.device is not None and state.device.kind == "cpu" and state.device.threads == 1
    time = time_of(state, one)
    placed = point(state, one, roofs, time)
    counted = bool(one.blocks and state.request and state.request.clock == "wall")
    return VariantResult(
        name=one.info.name,
        status=one.status,
        reason=one.reason,
        summary=one.info.summary,
        claim=one.info.claim,
        unchecked=one.info.unchecked,
        items=built.items if built else None,
        bytes=built.bytes if built else None,
        flops=built.flops if built else None,
        dtype=built.dtype if built else None,
        time_s=time,
        clocks=clocks_of(state, one, time),
        steps_per_block=one.calibrated.steps_per_block if one.calibrated else None,
        contention=one.contention if one_thread else None,
        faults_per_block=one.faults / one.blocks if counted else None,
        switches_per_block=one.switches / one.blocks if counted else None,
        sm_mhz=one.sm_mhz / one.blocks if one.sm_mhz and one.blocks else None,
        build_s=built.build_s if built else None,
        first_step_s=built.first_step_s if built else None,
        drifting=one.warmed.drifting if one.warmed else None,
        error=one.checked.error if one.checked else None,
        soak=_soak(state, one),
        operations=one.counted.operations if one.counted else None,
        flops_counted=(one.counted.flops or None) if one.counted else None,
        roofline=placed,
        goodput=goodput_of(state, one, time, placed),
        stage=failure.stage if failure else None,
        line=failure.line if failure else None,
    )
