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


def comparison(
    claims=1.0,
    *,
    steps_s=STEP_S,
    preempted=0.0,
    clock=Clock.WALL,
    base_claims=1.0,
    after_b_s=0.0,
    steps_of_b=STEPS,
    lead_in_of_b=LEAD_IN,
    checked=(),
):
    """Of b with a, after rounds in random order. `claims`: what part of its times b claims, and
    `base_claims` what a does; `preempted`: the part of the blocks that others interrupt;
    `after_b_s` passes behind each of b; `checked`: its speedups in blocks of the checks.
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
                now += after_b_s * (name == "b")
    count = len(columns["ended"])
    samples = e.Samples(
        names=NAMES,
        complete=20,
        cpu_s=[1e-4] * count,
        faults=[0] * count,
        switches=[0] * count,
        steps=[steps_of_b if index == NAMES.index("b") else STEPS for index in columns["variant"]],
        t=now,
        **columns,
    )
    calibrated = [
        e.Calibrated(
            variant=info.name,
            steps_per_block=STEPS,
            step_s=1e-3,
            empty_block_s=0.0,
            lead_in=lead_in_of_b if info.name == "b" else LEAD_IN,
            restore_s=RESTORE_S,
            t=0.3,
        )
        for info in INFOS
    ]
    looks = [
        e.Examined(variant="b", check="timed steps", values={"block_ratio": ratio}, t=now)
        for ratio in checked
    ]
    opened = opening(request(clock=clock))
    return report_of([*opened, *calibrated, samples, *looks, *END]).comparison("b")


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


@pytest.mark.parametrize("step_s", [1e-3, 0.25e-3])
def test_what_passes_behind_an_honest_block_is_no_time_of_its_steps(step_s):
    compared = comparison(steps_s={**STEP_S, "b": step_s}, after_b_s=2 * STEPS * step_s)
    assert check(compared).state == "passed"


def test_a_block_has_the_steps_that_were_calibrated():
    compared = comparison(0.5, steps_of_b=2 * STEPS)
    assert compared.reason.code == "block_of_other_steps"


def test_untimed_steps_take_about_as_long_for_all():
    compared = comparison(0.5, lead_in_of_b=4 * LEAD_IN + STEPS)
    assert compared.reason.code == "time_outside_of_blocks"


@pytest.mark.parametrize(
    ("checked", "state"),
    [
        ([1.0] * 6, "failed"),
        ([1.0, 1.0, 1.0, 2.1], "failed"),
        ([1.0, 1.0, 2.1, 1.9], "passed"),
        ([1.4, 1.3, 2.1, 1.9], "passed"),
        ([1.0] * 3, "failed"),
        ([1.0, 1.0, 1.5], "passed"),
        ([1.0] * 2, "passed"),
    ],
)
def test_what_is_saved_in_the_rounds_is_saved_in_the_blocks_of_the_checks_too(checked, state):
    compared = comparison(steps_s={**STEP_S, "b": 0.5e-3}, checked=checked)
    assert check(compared).state == state
    assert (compared.reason is not None) == (state == "failed")


def test_the_clock_of_a_device_may_stand():
    assert check(comparison(0.25, clock=Clock.DEVICE)).state == "not run"


ON_H100 = """
0 c207 b97+4.22 a207+9.23 | b96+149.59 c199+8.62 a202+5.98
1 c201 a201+7.02 b96+3.31 | b97+5.86 a202+8.95 c203+6.68 | b96+139.14 c200+8.71 a200+5.98
2 a201 b96+4.09 c201+8.99 | b96+3.09 a198+8.56 c201+6.66 | a203+6.62 b96+3.04 c202+8.67
3 a200 c200+7.09 b96+3.93 | a200+8.70 b96+3.70 c203+6.41 | c200+141.14 a201+6.72 b96+3.07
4 a202 b96+3.47 c202+6.68 | a201+6.70 b96+3.04 c203+8.74 | b96+3.04 a205+6.46 c206+6.77
5 b96 a201+9.32 c201+6.94 | c198+149.85 a200+6.12 b96+3.88
6 b96 a201+32.41 c201+6.97 | c201+6.68 a200+5.65 b96+2.72 | b96+5.70 c202+5.72 a201+5.69
7 a201 b100+7.98 c202+9.03 | c200+5.97 b99+3.76 a199+8.78 | b96+4.03 a203+8.68 c206+7.01
"""
"""Each process of channels_last (b) beside channels_first (a), with its rounds: microseconds of a
step, and milliseconds beside the block since the end of the one before. Blocks had 23 steps, and 28
untimed ones before them.
"""


def recorded():
    """The comparison of that run, in which outputs of b took 3 ms to be compared, of a 1 ms."""
    names = {"a": "a", "b": "b", "c": "control"}
    columns = {name: [] for name in ("epoch", "round", "variant", "times_s", "ended")}
    now = 1.0
    for line in ON_H100.strip().splitlines():
        epoch, blocks = line.split(maxsplit=1)
        for number, blocks_of_round in enumerate(blocks.split("|")):
            for block in blocks_of_round.split():
                step_us, _, beside_ms = block[1:].partition("+")
                step_s = float(step_us) * 1e-6
                now += float(beside_ms or 1e3) * 1e-3 + 23 * step_s
                row = int(epoch), number, NAMES.index(names[block[0]]), step_s, now
                for column, value in zip(columns.values(), row, strict=True):
                    column.append(value)
    count = len(columns["ended"])
    samples = e.Samples(
        names=NAMES,
        complete=8,
        cpu_s=[1e-4] * count,
        faults=[0] * count,
        switches=[0] * count,
        steps=[23] * count,
        t=now,
        **columns,
    )
    calibrated = [
        e.Calibrated(
            variant=info.name,
            steps_per_block=23,
            step_s=2e-4,
            empty_block_s=3e-6,
            lead_in=28,
            restore_s=4e-6,
            t=0.3,
        )
        for info in INFOS
    ]
    opened = opening(request(clock=Clock.WALL), processes=8, epochs=8)
    return report_of([*opened, *calibrated, samples, *END]).comparison("b")


def test_outputs_that_are_compared_behind_blocks_are_no_time_of_its_steps():
    compared = recorded()
    assert check(compared).state == "passed"
    assert compared.speedup == pytest.approx(2.09, rel=0.02)
