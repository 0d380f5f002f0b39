"""Times that blocks claim, against the time that passed for them."""

import random

import pytest
from synthetic_runs import END, INFOS, NAMES, opening, report_of, request

from gpulab.core import events as e
from gpulab.core.statuses import Clock

STEPS = 8
LEAD_IN = 2
RESTORE_S = 4e-3
STEP_S = {"a": 1e-3, "control": 1e-3, "b": 1e-3}


def comparison(claims=1.0, *, steps_s=STEP_S, preempted=0.0, clock=Clock.WALL, base_claims=1.0):
    """Of b with a, after rounds in random order. `claims`: what part of its times b claims, and
    `base_claims` what a does; `preempted`: the part of the blocks that others interrupt.
    """
    draw = random.Random(1)
    part = {"a": base_claims, "control": base_claims, "b": claims}
    columns = {name: [] for name in ("epoch", "round", "variant", "times_s", "ended")}
    now = 1.0
    for epoch in range(20):
        for number in range(5):
            for name in draw.sample(NAMES, len(NAMES)):
                step_s = steps_s[name] * draw.uniform(0.99, 1.01)
                now += (STEPS + LEAD_IN) * step_s + RESTORE_S + 50e-6
                now += draw.choice((0.0, 20e-3)) * (draw.random() < preempted)
                row = epoch, number, NAMES.index(name), step_s * part[name], now
                for column, value in zip(columns.values(), row, strict=True):
                    column.append(value)
    count = len(columns["ended"])
    samples = e.Samples(
        names=NAMES,
        complete=20,
        cpu_s=[1e-4] * count,
        faults=[0] * count,
        switches=[0] * count,
        steps=[STEPS] * count,
        t=now,
        **columns,
    )
    calibrated = [
        e.Calibrated(
            variant=info.name,
            steps_per_block=STEPS,
            step_s=1e-3,
            empty_block_s=0.0,
            lead_in=LEAD_IN,
            restore_s=RESTORE_S,
            t=0.3,
        )
        for info in INFOS
    ]
    opened = opening(request(clock=clock))
    return report_of([*opened, *calibrated, samples, *END]).comparison("b")


def check(compared):
    return next(check for check in compared.trust.checks if check.kind == "elapsed time")


@pytest.mark.parametrize("preempted", [0.0, 0.3])
@pytest.mark.parametrize("step_s", [1e-3, 0.2e-3, 2e-3])
def test_honest_blocks_fill_their_time_also_beside_others(step_s, preempted):
    compared = comparison(steps_s={**STEP_S, "b": step_s}, preempted=preempted)
    assert check(compared).state == "passed"
    assert check(compared).result.values["share"] < 0.3
    assert compared.verdict != "invalid"


@pytest.mark.parametrize("preempted", [0.0, 0.3])
@pytest.mark.parametrize("factor", [1.4, 4.0, 15.0])
def test_shorter_times_of_the_same_work_are_invalid(factor, preempted):
    compared = comparison(1 / factor, preempted=preempted)
    assert (compared.verdict, compared.speedup) == ("invalid", None)
    assert compared.reason.code == "time_outside_of_blocks"
    saved_s = STEP_S["a"] * (1 - 1 / factor)
    assert compared.reason.values["saved_s"] == pytest.approx(saved_s, rel=0.05)


def test_longer_times_of_the_baseline_are_invalid():
    assert comparison(base_claims=1.8).reason.code == "time_outside_of_blocks"


def test_the_clock_of_a_device_may_stand():
    assert check(comparison(0.25, clock=Clock.DEVICE)).state == "not run"
